"""Files to graphs: triples, vocabularies, inverses, adjacency, data sets and their catalogue."""
