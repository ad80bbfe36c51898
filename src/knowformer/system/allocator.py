"""Keeps freed memory for the next step, and spares Python's collector what is loaded for good.

A training step asks for the same large buffers again and again. glibc returns them to the kernel
when they are freed, and every page of the next ones is zeroed again at its first touch. Python's
collector, too, looks at every object again and again: of a million names a tenth of a second, in
the middle of an answer that takes milliseconds. Only the command calls these: a library does not
change its host's process.
"""

import ctypes
import gc
import sys

# From glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_TOP_PAD = -2
M_MMAP_MAX = -4
M_ARENA_MAX = -8


def keep_freed_memory() -> None:
    """Tells glibc to reuse freed buffers of any size; does nothing with another C library."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_MMAP_MAX, 0)  # no buffer gets a mapping of its own, which would end with it
    mallopt(M_ARENA_MAX, 1)  # what one thread frees, another can use
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(M_TOP_PAD, 2**26)


def keep_loaded_objects() -> None:
    """Takes all objects that there are out of the collector's rounds, once all is loaded."""
    gc.collect()
    gc.freeze()
