"""Baselines that cost seconds: what popularity alone and rules of one or two steps would score."""
