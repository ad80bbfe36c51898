"""Data sets: the catalogue, files of many formats, splits and readable names."""
