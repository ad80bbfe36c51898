"""One reader per file format: bytes in, rows of named facts out."""
