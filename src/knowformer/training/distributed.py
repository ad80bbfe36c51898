"""Processes that train together, started by torchrun; on one process all this does nothing.

Work is cut as on one process, and its pieces are dealt out by their numbers. Every process gets the
results of all, in the order of the pieces, and sums them itself: weights have the same bits for any
number of processes, as they have for any number of threads.

The first process leads. It alone reads the graph and writes the run folder, and its clock decides.
The others follow: they get a copy of what they need, whatever machine they are on.
"""

import hashlib
import importlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from knowformer.errors import ConfigError, KnowformerError, NonFiniteLossError, ProcessLostError
from knowformer.system.interrupts import delayed_interrupt
from knowformer.system.workers import available_cores
from knowformer.training.clock import Clock
from knowformer.training.peers import Peers

TIMEOUT = timedelta(hours=2)  # the leader reads a graph, or calibrates, while the others wait
CHUNK = 2**26  # bytes of a file that are sent at a time
LEADER = 0
PACKAGE = "knowformer"

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

_logger = logging.getLogger(PACKAGE)


@runtime_checkable
class Pool(Protocol):
    """What runs pieces of work and gives their results in order, such as ``Workers``."""

    def imap(
        self, function: Callable[[Item], Sequence[Tensor]], items: Sequence[Item]
    ) -> Iterator[Sequence[Tensor]]:
        """Yields the results in the order of the items."""
        ...


class _InTurn:
    """Runs pieces where they are asked for."""

    def imap(
        self, function: Callable[[Item], Sequence[Tensor]], items: Sequence[Item]
    ) -> Iterator[Sequence[Tensor]]:
        return map(function, items)


class Processes:
    """This process alone."""

    def sharing(self, pool: Pool) -> Pool:
        """Returns a pool that shares pieces of work with the other processes."""
        return pool

    @property
    def in_turn(self) -> Pool:
        """Shares pieces of work that use this process's threads themselves."""
        return _InTurn()

    def clock(self, clock: Clock) -> Clock:
        """Returns a clock that shows the same time to all processes: the leader's."""
        return clock

    def agree(self, decision: bool) -> bool:
        """Returns the leader's decision."""
        return decision

    def threads(self, wanted: int) -> int:
        """Returns how many threads to use; 0 takes all cores that are this process's share."""
        return wanted

    def by_leader(self, function: Callable[Arguments, None]) -> Callable[Arguments, None]:
        """Returns a function that only the leader calls."""
        return function

    def check_same(self, weights: Mapping[str, Tensor]) -> None:
        """Checks that all processes have the same weights.

        Raises:
            ConfigError: one of them rounds in another way.
        """

    def interrupts(self) -> AbstractContextManager[Callable[[], bool]]:
        """As ``delayed_interrupt``."""
        return delayed_interrupt()

    def send_files(self, paths: Iterable[Path], told: Iterable[int] = ()) -> None:
        """Sends the files that exist to those that follow, and numbers besides."""

    def receive_files(self, folder: Path) -> list[int]:
        """Writes the files that the leader sends to a folder; returns the numbers besides."""
        raise NotImplementedError("a process alone follows none")

    def follow(self, work: Callable[["Processes"], Result]) -> Result | None:
        """Does the work of a process that follows; None: this one leads."""
        del work

    @contextmanager
    def leading(self) -> Generator[None]:
        """While inside, this process leads: if it fails, the others need not say so."""
        yield


class _Together(Processes):
    """One of several processes."""

    def __init__(self, peers: Peers, *, number: int, size: int) -> None:
        self._peers = peers
        self._number = number
        self._size = size

    def sharing(self, pool: Pool) -> Pool:
        return _SharedPool(pool, self._peers, number=self._number, size=self._size)

    @property
    def in_turn(self) -> Pool:
        return self.sharing(_ahead())

    def clock(self, clock: Clock) -> Clock:
        return _LedClock(clock, self._agree_on)

    def agree(self, decision: bool) -> bool:
        return bool(self._agree_on(float(decision)))

    def _agree_on(self, value: float) -> float:
        if self._number == LEADER:
            self._peers.send([torch.tensor(value, dtype=torch.double)])
            return value
        return self._peers.receive(LEADER)[0].item()

    def threads(self, wanted: int) -> int:
        on_machine = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        return wanted or max(1, available_cores() // on_machine)

    def by_leader(self, function: Callable[Arguments, None]) -> Callable[Arguments, None]:
        return function if self._number == LEADER else _do_nothing

    def check_same(self, weights: Mapping[str, Tensor]) -> None:
        digest = hashlib.sha256()
        for tensor in weights.values():
            digest.update(tensor.detach().contiguous().numpy().data)
        mine = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)
        pool = self.sharing(_InTurn())
        of_all = [each for (each,) in pool.imap(lambda _: [mine], range(self._size))]
        for number, other in enumerate(of_all):
            if not torch.equal(other, of_all[LEADER]):
                raise ConfigError(
                    f"Expected the same weights in all {self._size} processes, found others in "
                    f"that of rank {number}: its processor or its packages round in another way. "
                    "Train on machines of one kind, with the same packages."
                )

    def interrupts(self) -> AbstractContextManager[Callable[[], bool]]:
        # torchrun ends processes by SIGTERM, when it is ended itself or when one of them died; then
        # the others find out which, and say so.
        return delayed_interrupt(signal.SIGTERM)

    def send_files(self, paths: Iterable[Path], told: Iterable[int] = ()) -> None:
        there = [path for path in paths if path.exists()]
        self._peers.send([_as_bytes(version(PACKAGE)), torch.tensor([len(there), *told])])
        for path in there:
            size = path.stat().st_size
            self._peers.send([_as_bytes(path.name), torch.tensor(size)])
            with path.open("rb") as file:
                for _ in range(0, size, CHUNK):
                    self._peers.send([_as_bytes(file.read(CHUNK))])
                    self._peers.finish_sending()
        self._peers.finish_sending()

    def receive_files(self, folder: Path) -> list[int]:
        sent, told = self._peers.receive(LEADER)
        if (theirs := _as_text(sent)) != version(PACKAGE):
            raise ConfigError(
                f"Expected knowformer {theirs} as on the machine of rank {LEADER}, found "
                f"{version(PACKAGE)}. Install the same version on all machines."
            )
        for _ in range(int(told[0])):
            name, size = self._peers.receive(LEADER)
            with (folder / _as_text(name)).open("wb") as file:
                for _ in range(0, int(size), CHUNK):
                    file.write(self._peers.receive(LEADER)[0].numpy().data)
        return told[1:].tolist()

    def follow(self, work: Callable[[Processes], Result]) -> Result | None:
        if self._number == LEADER:
            return None
        _logger.setLevel(logging.WARNING)  # the leader tells how it goes
        # Who follows leaves when the leader does, whatever signal reaches it first.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _heed_nothing)
        try:
            return work(self)
        except ProcessLostError:
            raise
        except (NonFiniteLossError, KeyboardInterrupt):  # met by all, told by the leader
            raise SystemExit(1) from None
        except KnowformerError as error:
            self._peers.leave()
            error.args = (f"Rank {self._number} of {self._size}: {error}",)
            raise
        except Exception:
            self._peers.leave()
            raise

    @contextmanager
    def leading(self) -> Generator[None]:
        def end(*_: Any) -> None:
            self._peers.probe()  # torchrun ends all processes when one has died: which?
            raise SystemExit(128 + signal.SIGTERM)

        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, end) if is_main else None
        try:
            yield
        except ProcessLostError:
            raise
        except BaseException:
            self._peers.leave()
            raise
        finally:
            if is_main:
                signal.signal(signal.SIGTERM, before)


class _SharedPool:
    """A pool that runs this process's share of the pieces, and gives the results of all."""

    def __init__(self, pool: Pool, peers: Peers, *, number: int, size: int) -> None:
        self._pool = pool
        self._peers = peers
        self._number = number
        self._size = size

    def imap(
        self, function: Callable[[Item], Sequence[Tensor]], items: Sequence[Item]
    ) -> Iterator[Sequence[Tensor]]:
        own = iter(self._pool.imap(function, items[self._number :: self._size]))
        for number in range(len(items)):
            owner = number % self._size
            if owner == self._number:
                result = next(own)
                self._peers.send(result)
                yield result
            else:
                yield self._peers.receive(owner)
        self._peers.finish_sending()


class _Ahead:
    """Runs pieces in a thread of its own, one after the other, while results are exchanged."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "knowformer-share", torch.set_num_threads, (1,))

    def imap(
        self, function: Callable[[Item], Sequence[Tensor]], items: Sequence[Item]
    ) -> Iterator[Sequence[Tensor]]:
        return self._pool.map(function, items)


@cache
def _ahead() -> _Ahead:
    return _Ahead()


class _LedClock(Clock):
    """The leader's clock: it stands still between two ticks, so that all decide alike."""

    def __init__(self, clock: Clock, agree: Callable[[float], float]) -> None:
        self._clock = clock
        self._agree = agree
        self._shown: float | None = None

    def add(self, seconds: float) -> None:
        self._clock.add(seconds)

    def elapsed(self) -> float:
        return self._clock.elapsed() if self._shown is None else self._shown

    def tick(self) -> None:
        self._shown = self._agree(self._clock.elapsed())

    def release(self) -> None:
        self._shown = None


@cache
def join() -> Processes:
    """Returns the processes that this one was started with, by torchrun; once they are all there.

    They stay together until they end.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size <= 1:
        return Processes()
    group: Any = importlib.import_module("torch.distributed")
    store, number, size = next(group.rendezvous("env://", timeout=TIMEOUT))
    # After a restart by torchrun the store still has what those before have written.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = group.PrefixStore(f"knowformer {attempt}", store)
    group.init_process_group("gloo", store=store, rank=number, world_size=size, timeout=TIMEOUT)
    return processes_of(Peers(group, store, number=number, size=size), number=number, size=size)


def processes_of(peers: Peers, *, number: int, size: int) -> Processes:
    """Returns this process as one of several.

    Args:
        peers: the others.
        number: of this process, from 0, which leads.
        size: how many there are.
    """
    return _Together(peers, number=number, size=size)


def _do_nothing(*_: Any, **__: Any) -> None:
    pass


def _heed_nothing(*_: Any) -> None:
    pass


def _as_bytes(content: str | bytes) -> Tensor:
    content = content.encode() if isinstance(content, str) else content
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def _as_text(content: Tensor) -> str:
    return content.numpy().tobytes().decode()
