"""Checks explanations: what an answer loses without its evidence."""
