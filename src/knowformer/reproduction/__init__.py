"""The paper's experiments as files: found, run, stored and reported."""
