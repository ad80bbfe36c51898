"""Kernels between fences: every array ends, or begins, at a page that may not be touched.

Compiled kernels take addresses, where no compiler can check an index. So each of their arrays is
moved to where reading or writing one element beyond it ends the process:

    python -m tests.contracts.fenced          every kernel, on graphs that go wrong first
    python -m tests.contracts.fenced broken   an edge from an entity that is not there: must crash
"""

import ctypes
import mmap
import sys
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from knowformer.kernels import _cpu_compile
from knowformer.kernels._arguments import DTYPES, TABLE, size_of
from knowformer.kernels._cpu_compile import BLOCK, Kernel
from knowformer.kernels.interface import select_backend
from tests.contracts.accuracy import (
    GRAPHS,
    draw_inputs,
    edges_of,
    outputs_and_gradients,
    random_edges,
    view_of,
)
from tests.contracts.operations import HOPS, WITH_KERNEL

PAGE = mmap.PAGESIZE
NO_ACCESS = 0

_libc = ctypes.CDLL(None, use_errno=True)
_plain_call = Kernel.__call__


class Fences:
    """Where arrays are put: at the end or at the beginning of their pages."""

    at_end = True
    called: set[str]


def fenced(tensor: Tensor) -> Tensor:
    """Returns a copy of a tensor between pages that may not be touched."""
    size = tensor.numel() * tensor.element_size()
    if not size:
        return tensor
    room = -(-size // PAGE) * PAGE
    pages = mmap.mmap(-1, room + 2 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    offset = PAGE + (room - size if Fences.at_end else 0)
    copy = torch.frombuffer(pages, dtype=tensor.dtype, count=tensor.numel(), offset=offset)
    copy.copy_(tensor.detach().flatten())
    for fence in (start, start + PAGE + room):
        if _libc.mprotect(ctypes.c_void_p(fence), PAGE, NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
    return copy


def call_fenced(self: Kernel, **values: Any) -> None:
    Fences.called.add(self._name)
    copies = {n: fenced(v) if isinstance(v, Tensor) else v for n, v in values.items()}
    _plain_call(self, **copies)
    for name, copy in copies.items():
        if isinstance(copy, Tensor):
            original = values[name].detach().view(-1)
            if copy.numpy().tobytes() != original.numpy().tobytes():
                original.copy_(copy)


def reserve_fenced(self: Any, argument: Any, values: dict[str, Any]) -> None:
    name, count = argument.name, size_of(argument.size, values) * argument.lanes(self._sizes)
    array = fenced(torch.empty(count, dtype=DTYPES[argument.kind]))
    self._arrays[name], self._counts[name] = array, count
    self._addresses[name] = array.data_ptr()


def put_up() -> None:
    Fences.called = set()
    Kernel.__call__ = call_fenced  # pyright: ignore[reportAttributeAccessIssue]
    _cpu_compile._Scratch._reserve = reserve_fenced  # pyright: ignore[reportPrivateUsage]


def run_every_kernel() -> None:
    backend = select_backend("cpu")
    views = [view_of(edges_of(name)) for name in GRAPHS] + [
        view_of(random_edges(2 * BLOCK + 1, 99))
    ]
    for operation in WITH_KERNEL:
        for view in views:
            inputs = draw_inputs(operation, view)
            found = []
            for Fences.at_end in (True, False):
                found.append(outputs_and_gradients(operation, backend, inputs, view))
            assert all(torch.equal(value, found[1][name]) for name, value in found[0].items())
    missing = TABLE.keys() - Fences.called
    assert not missing, missing


def run_broken() -> None:
    edges = edges_of("random")
    sender = edges.sender.clone()
    sender[3] = edges.num_entities  # one beyond: of the last query, the row after all rows
    view = view_of(replace(edges, sender=sender))
    with torch.no_grad():
        HOPS[0].apply(select_backend("cpu"), draw_inputs(HOPS[0], view), view)


if __name__ == "__main__":
    torch.set_num_threads(1)
    put_up()
    run_broken() if "broken" in sys.argv else run_every_kernel()
