"""The colours of every picture."""

BLUE, ORANGE, GREY = "#1f5fbf", "#d9480f", "#9aa5b1"
INK, PALE = "#243b53", "#e8eef6"
"""Text, and fills behind it."""
