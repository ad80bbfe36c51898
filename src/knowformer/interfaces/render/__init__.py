"""Results for people: tables and lines of rich, one file per kind of result."""
