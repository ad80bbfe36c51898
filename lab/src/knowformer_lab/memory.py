"""Peak memory of a piece of work inside a longer process."""

import ctypes
import gc
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def reset_peak_memory() -> None:
    """Hands freed memory back and watches anew; where it cannot, the peak is that so far."""
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        _CLEAR.write_text("5")  # Linux: peak resident size is set to the present one


def peak_memory_mib() -> float:
    """Returns the largest resident size since ``reset_peak_memory``, in MiB."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    import resource  # not on every system

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 1024), 1)
