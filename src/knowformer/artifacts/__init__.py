"""The run folder: what a run leaves behind, and what a Reasoner is loaded from."""
