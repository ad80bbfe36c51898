"""A fixed number of threads, each running torch on one core; results come in order.

Work is cut by what it is, never by how many threads there are, so their number changes the speed
and not a bit of the result. Kernels release Python's lock while they run.
"""

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """Returns the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _TorchThreads:
    """How many threads torch has outside of all blocks that keep it on one core.

    Blocks may be nested, and those of several Python threads may overlap in any order: the number
    is what it was before the first of them, and the outermost of each thread puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = threading.local()
        self._blocks = 0
        self._before = 1

    def enter(self) -> None:
        self._depth.value = getattr(self._depth, "value", 0) + 1
        if self._depth.value > 1:
            return
        with self._lock:
            if self._blocks == 0:
                self._before = torch.get_num_threads()
            self._blocks += 1
            torch.set_num_threads(1)

    def leave(self) -> None:
        self._depth.value -= 1
        if self._depth.value:
            return
        with self._lock:
            self._blocks -= 1
            torch.set_num_threads(self._before)


_torch_threads = _TorchThreads()


@contextmanager
def torch_on_one_core() -> Generator[None]:
    """Keeps torch's own threads out of the way of workers, in the thread that hands work out.

    Its pool waits by spinning: beside busy workers, small sums take a hundred times as long.
    """
    _torch_threads.enter()
    try:
        yield
    finally:
        _torch_threads.leave()


class Workers:
    """Threads to hand pieces of work to."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        # torch's own pool would compete with these threads for the same cores.
        self._pool = ThreadPoolExecutor(
            threads, "knowformer", initializer=torch.set_num_threads, initargs=(1,)
        )

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Returns the function's results in the order of the items; the first error is raised."""
        return list(self._pool.map(function, items))

    def imap(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields the function's results in the order of the items, each as soon as it is there."""
        return self._pool.map(function, items)

    def ahead(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields the function's results in order, the next one made while one is used."""
        pending: Future[Result] | None = None
        for item in items:
            following = self._pool.submit(function, item)
            if pending is not None:
                yield pending.result()
            pending = following
        if pending is not None:
            yield pending.result()


@cache
def _shared(threads: int) -> Workers:
    return Workers(threads)


def shared_workers(threads: int = 0) -> Workers:
    """Returns this process's workers; 0 takes all cores."""
    return _shared(threads or available_cores())
