"""Audit of a data set: counts, leaks and odd structure, as numbers, findings and text."""
