"""Makes glibc keep freed memory for the next step instead of returning it to the system.

A training step asks for the same large buffers again and again. glibc returns them to the kernel
when they are freed, and every page of the next ones is zeroed again at its first touch. Only the
command calls this: a library does not change its host's allocator.
"""

import ctypes
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
