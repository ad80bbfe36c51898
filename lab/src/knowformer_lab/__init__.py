"""The laboratory: the paper's experiments as files, run, stored and reported.

It uses knowformer as any other program does; knowformer knows of it only as a plug-in.
"""

__version__ = "0.1.0"
