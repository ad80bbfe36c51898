"""The KnowFormer model: (edges, queries, noise) -> scores of every entity."""
