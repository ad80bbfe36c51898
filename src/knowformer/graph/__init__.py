"""Graphs as values: vocabularies, inverses, facts and their index, adjacency, walks, partitions."""
