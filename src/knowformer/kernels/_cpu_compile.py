"""Compiles the CPU kernels for one width and head width, once; compiled code is cached on disk.

A compiled kernel is called by address with plain pointers and numbers: a call costs a few
microseconds and does not hold Python's lock, so threads run kernels side by side.
"""

import ctypes
import importlib
import inspect
import logging
import threading
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from numba import cfunc, types
from torch import Tensor

from knowformer.kernels._arguments import (
    DTYPES,
    Argument,
    arguments_of,
    check_call,
    names_in,
    size_of,
)
from knowformer.kernels._cpu_stages import BLOCK
from knowformer.kernels._vectors import rows_of
from knowformer.system.notices import if_slow

WIDTHS = (16, 32, 64)
MODULES = ("_cpu_hop", "_cpu_input", "_cpu_attention", "_cpu_score")
SOURCES = (*MODULES, "_cpu_stages", "_vectors", "_arguments")

_lock = threading.Lock()  # Numba compiles one at a time
_logger = logging.getLogger(__name__)


class Kernel:
    """A compiled kernel, called by the names of its arguments."""

    is_checked = False
    """Whether every call is checked against the table of arguments: in tests."""

    def __init__(self, name: str, width: int, head_width: int) -> None:
        self._name = name
        self._arguments = arguments_of(name)
        self._sizes = {"D": width, "C": head_width, "H": width // head_width, "BLOCK": BLOCK}
        self._scratch = _Scratch(self._arguments, self._sizes)
        self._names = [argument.name for argument in self._arguments]
        self._compiled = _compile(name, self._sizes)
        prototype = ctypes.CFUNCTYPE(
            None, *(_C_TYPES.get(a.kind, ctypes.c_void_p) for a in self._arguments)
        )
        self._call = prototype(self._compiled.address)

    def __call__(self, **values: Tensor | float | None) -> None:
        """Runs the kernel; arrays of scratch are added here, and what is left out is null."""
        if Kernel.is_checked:
            check_call(self._name, values, **self._sizes)
        values.update(self._scratch.addresses(values))
        # On small graphs this line takes as long as a kernel: it stays free of calls into Python.
        self._call(
            *[
                value.data_ptr() if isinstance(value, Tensor) else value or 0
                for value in map(values.get, self._names)
            ]
        )


class _Scratch(threading.local):
    """The scratch arrays of a kernel: each thread keeps its own from call to call."""

    def __init__(self, arguments: Sequence[Argument], sizes: dict[str, int]) -> None:
        self._sizes = sizes
        self._arrays: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}
        self._addresses: dict[str, int] = {}
        scratch = [argument for argument in arguments if argument.mark == "scratch"]
        self._varying = [a for a in scratch if not names_in(a.size) <= set(sizes)]
        for argument in scratch:
            if argument not in self._varying:
                self._reserve(argument, sizes)

    def addresses(self, values: dict[str, Any]) -> dict[str, int]:
        """Returns where the arrays are, large enough for a call with these arguments."""
        for argument in self._varying:
            self._reserve(argument, {**values, **self._sizes})
        return self._addresses

    def _reserve(self, argument: Argument, values: dict[str, Any]) -> None:
        name, count = argument.name, size_of(argument.size, values) * argument.lanes(self._sizes)
        if count > self._counts.get(name, -1):
            array = torch.empty(count, dtype=DTYPES[argument.kind])
            self._arrays[name], self._counts[name] = array, count
            self._addresses[name] = array.data_ptr()


_C_TYPES: dict[str, Any] = {"number": ctypes.c_int64, "real": ctypes.c_float}
_NUMBA_TYPES: dict[str, Any] = {
    "int32": types.CPointer(types.int32),
    "int64": types.CPointer(types.int64),
    "float32": types.CPointer(types.float32),
    "uint8": types.CPointer(types.uint8),
    "number": types.int64,
    "real": types.float32,
}


@cache
def compiled_kernel(name: str, width: int, head_width: int = 8) -> Kernel:
    """Returns a kernel for states of ``width`` floats and heads of ``head_width``.

    The first use on a machine compiles it, which takes some seconds and is said in the log.
    """
    with _lock, if_slow(_say_once):
        return Kernel(name, width, head_width)


@cache
def _say_once() -> None:
    _logger.info("Loading the CPU kernels; the first start on this machine compiles them.")


@cache
def _functions() -> dict[str, Any]:
    """The kernels by name, wherever they are written."""
    modules: list[ModuleType] = [
        importlib.import_module(f"knowformer.kernels.{name}") for name in MODULES
    ]
    return {name: function for module in modules for name, function in vars(module).items()}


@cache
def _source_digest() -> str:
    """A name for this version of the kernels: Numba's cache looks at one file, they span several."""
    sources = (Path(__file__).with_name(f"{name}.py") for name in SOURCES)
    return blake2b(b"".join(path.read_bytes() for path in sources), digest_size=8).hexdigest()


def _compile(name: str, sizes: dict[str, int]) -> Any:
    function, arguments = _functions()[name], arguments_of(name)
    named = list(inspect.signature(function).parameters)
    assert named == [argument.name for argument in arguments], f"{name}: {named}"
    rows = {"rows": rows_of(sizes["D"]), "heads": rows_of(sizes["C"])}
    signature = types.void(*((rows | _NUMBA_TYPES)[argument.kind] for argument in arguments))
    function.__qualname__ = f"{name}_{_source_digest()}"
    options: dict[str, Any] = {"nopython": True, "error_model": "numpy", "boundscheck": False}
    try:
        return cfunc(signature, cache=True, **options)(function)
    except (RuntimeError, OSError):
        # No folder can be written for the cache: compile for this process alone.
        return cfunc(signature, cache=False, **options)(function)
