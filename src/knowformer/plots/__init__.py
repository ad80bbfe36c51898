"""Pictures of runs; each needs matplotlib and nothing else does."""
