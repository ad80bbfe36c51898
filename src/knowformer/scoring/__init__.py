"""Inference: a model bound to a graph, queries in, repeatable scores out."""
