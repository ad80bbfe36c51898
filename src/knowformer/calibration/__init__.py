"""Scores to probabilities: features, sample, fit, calibrator, and how well they hold."""
