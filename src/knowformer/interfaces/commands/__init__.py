"""One file per command; ``interfaces.cli`` registers them."""
