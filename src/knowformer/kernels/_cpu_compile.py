"""Compiles the CPU kernels for one width and head width, once; compiled code is cached on disk.

A compiled kernel is called by address with plain pointers and numbers: a call costs about a
microsecond and does not hold Python's lock, so threads run kernels side by side.
"""

# pyright: basic

import ctypes
import logging
import threading
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba import cfunc, types

from knowformer.kernels import _cpu_kernels
from knowformer.kernels._vectors import rows_of

WIDTHS = (16, 32, 64)
SOURCES = ("_cpu_kernels.py", "_cpu_stages.py", "_vectors.py")

# One letter per argument: D-wide rows, head-wide rows, int32 and int64 numbers, floats, bytes,
# a number, a float.
SIGNATURES = {
    "hop_forward": "rr iii rr rr rr nnnnnn",
    "hop_backward": "rrrr iiii rr rr rrrrr r nnnnn",
    "input_forward": "rr l rr r r nnnn",
    "input_backward": "rr l rrr r rrrr r nnnn",
    "spread_forward": "rr iiiiii l r rr rr iii rrr rr nnnnnnn",
    "attend_forward": "rrrh rr b rh rh ff r nnns",
    "attend_backward": "rrrh rrr b h r rrrrr rh h rh rh ff nnns",
    "score_forward": "rr r f r n s",
    "score_backward": "rrrr f rrr r n",
}

Kernel = Callable[..., None]

NOTICE_SECONDS = 1.5

_lock = threading.Lock()  # Numba compiles one at a time
_logger = logging.getLogger(__name__)


@cache
def compiled_kernel(name: str, width: int, head_width: int = 8) -> Kernel:
    """Returns a kernel for states of ``width`` floats and heads of ``head_width``.

    The first use on a machine compiles it, which takes some seconds and is said in the log.
    """
    with _lock:
        notice = threading.Timer(NOTICE_SECONDS, _say_once)
        notice.start()
        try:
            return _compiled(name, width, head_width)
        finally:
            notice.cancel()


@cache
def _say_once() -> None:
    _logger.info("Compiling the CPU kernels for this machine, once; later starts load them.")


def _compiled(name: str, width: int, head_width: int) -> Kernel:
    numba_types: dict[str, Any] = {
        "r": rows_of(width),
        "h": rows_of(head_width),
        "i": types.CPointer(types.int32),
        "l": types.CPointer(types.int64),
        "f": types.CPointer(types.float32),
        "b": types.CPointer(types.uint8),
        "n": types.int64,
        "s": types.float32,
    }
    letters = SIGNATURES[name].replace(" ", "")
    signature = types.void(*(numba_types[letter] for letter in letters))
    function = getattr(_cpu_kernels, name)
    compiled = _compile(signature, function)
    plain = {"n": ctypes.c_int64, "s": ctypes.c_float}
    prototype = ctypes.CFUNCTYPE(None, *(plain.get(letter, ctypes.c_void_p) for letter in letters))
    kernel = prototype(compiled.address)
    kernel.keep_alive = compiled  # its code goes when it goes
    return kernel


@cache
def _source_digest() -> str:
    """A name for this version of the kernels: Numba's cache looks at one file, they span three."""
    sources = (Path(__file__).with_name(name) for name in SOURCES)
    return blake2b(b"".join(path.read_bytes() for path in sources), digest_size=8).hexdigest()


def _compile(signature: Any, function: Any) -> Any:
    function.__qualname__ = f"{function.__name__}_{_source_digest()}"
    options = {"nopython": True, "error_model": "numpy", "boundscheck": False}
    try:
        return cfunc(signature, cache=True, **options)(function)
    except (RuntimeError, OSError):
        # No folder can be written for the cache: compile for this process alone.
        return cfunc(signature, cache=False, **options)(function)
