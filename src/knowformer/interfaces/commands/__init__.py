"""Commands, a file each; ``interfaces.cli`` registers them."""
