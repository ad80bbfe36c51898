"""Scores to probabilities: sampled, fitted, applied and judged."""
