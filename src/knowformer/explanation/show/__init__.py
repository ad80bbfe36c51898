"""Draws explanations: layout of paths, text that fits, pictures."""
