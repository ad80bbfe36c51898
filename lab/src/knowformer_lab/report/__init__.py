"""RESULTS.md and its pictures, from result files alone."""
