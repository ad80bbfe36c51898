"""Configuration, losses, optimiser and the loop that trains a model."""
