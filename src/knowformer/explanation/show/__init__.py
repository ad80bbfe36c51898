"""Shows explanations: layout of paths and their picture."""
