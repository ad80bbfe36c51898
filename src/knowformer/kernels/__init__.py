"""Tensors in, tensors out: the operations that cost time. Only ``interface`` is public."""
