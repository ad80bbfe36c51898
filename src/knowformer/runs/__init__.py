"""The run folder: all that a training leaves, and how it is read again."""
