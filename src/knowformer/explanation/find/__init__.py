"""Finds evidence for an answer: gradients through the model, paths, attention."""
