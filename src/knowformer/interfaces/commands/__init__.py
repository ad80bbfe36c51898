"""One file per command; ``interfaces.app`` registers them."""
