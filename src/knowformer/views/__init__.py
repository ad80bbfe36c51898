"""Views: for every query its own part of the graph. Nothing here knows of models."""
