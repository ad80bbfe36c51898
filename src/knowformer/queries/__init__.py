"""Graphs to questions: queries, what is known, what is hidden, negatives and batches."""
