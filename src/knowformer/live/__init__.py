"""A graph that takes facts while it is asked: stored, durable, one snapshot after another."""
