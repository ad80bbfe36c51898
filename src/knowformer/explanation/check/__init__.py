"""Checks explanations: what answers lose without their evidence, one by one and on a test set."""
