"""Peers: what processes that train together send one another, and which of them is lost.

Tensors go straight from the process that has them to each of the others. So a process that waits
knows whom it waits for, and if that one is gone, it can be named. A process that leaves because of
another's loss first writes down whose loss it was, so that nobody takes it for the one that died.
"""

import json
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from knowformer.errors import ProcessLostError

ALIGNMENT = 8  # bytes, so that every tensor of a message can be seen in place
PROBE = 1  # tag of messages that nobody takes
LEFT = "left"  # in the place of whose loss it was: a process that has said itself why it leaves


@dataclass(frozen=True)
class _Sending:
    """A message under way, and the memory that it is sent from."""

    to: int
    work: Any
    buffer: Tensor


class Peers:
    """The other processes of a group, by their number."""

    def __init__(self, group: Any, store: Any, *, number: int, size: int) -> None:
        """Introduces this process to the others.

        Args:
            group: ``torch.distributed``, initialised.
            store: what all processes can write to and read from, besides their messages.
            number: of this process, from 0.
            size: how many there are.
        """
        self._group = group
        self._store = store
        self._number = number
        self._others = [other for other in range(size) if other != number]
        self._size = size
        self._sending: list[_Sending] = []
        store.set(f"who {number}", f"process {os.getpid()} on {socket.gethostname()}")

    def send(self, tensors: Sequence[Tensor]) -> None:
        """Begins to send tensors to all others; they may be changed afterwards."""
        header, content = pack(tensors)
        self._reap(wait=False)
        for other in self._others:
            for buffer in (header, content):
                with self._blaming(other):
                    work = self._group.isend(buffer, other)
                self._sending.append(_Sending(other, work, buffer))

    def receive(self, sender: int) -> list[Tensor]:
        """Returns what another process sends."""
        header = torch.empty(2, dtype=torch.int64)
        with self._blaming(sender):
            self._group.recv(header, sender)
            content = torch.empty(int(header[0]), dtype=torch.uint8)
            self._group.recv(content, sender)
        return unpack(content, int(header[1]))

    def finish_sending(self) -> None:
        """Waits until all that was sent has arrived."""
        self._reap(wait=True)

    def _reap(self, *, wait: bool) -> None:
        under_way: list[_Sending] = []
        for sending in self._sending:
            if wait or sending.work.is_completed():
                with self._blaming(sending.to):
                    sending.work.wait()
            else:
                under_way.append(sending)
        self._sending = under_way

    def probe(self) -> None:
        """Looks whether all others are there, without a word to them.

        Raises:
            ProcessLostError: one is gone.
        """
        for other in self._others:
            with self._blaming(other):
                self._group.isend(torch.zeros(1), other, tag=PROBE)

    def leave(self, reason: str = LEFT) -> None:
        """Writes down that this process leaves; once, as later reasons follow from the first."""
        with suppress(RuntimeError):  # whoever keeps the store may be the one that is lost
            self._store.compare_set(f"why {self._number}", "", reason)

    def _blaming(self, other: int) -> "_Blame":
        return _Blame(self, other)

    def lost(self, suspect: int) -> ProcessLostError | None:
        """Finds out whose loss it is that a process cannot be reached.

        Returns:
            What to say; None if it has left with a word of its own, or if another process says it.
        """
        blamed: set[int] = set()
        while (reason := self._reason(suspect)) and suspect not in blamed:
            if reason == LEFT:
                self.leave()
                return None
            blamed.add(suspect)
            suspect = int(reason)
        self.leave(str(suspect))
        speaker = min(other for other in range(self._size) if other != suspect)
        if self._number != speaker:
            return None
        return ProcessLostError(number=suspect, size=self._size, who=self._read(f"who {suspect}"))

    def _reason(self, number: int) -> str:
        return self._read(f"why {number}")

    def _read(self, key: str) -> str:
        with suppress(RuntimeError):
            if self._store.check([key]):
                return self._store.get(key).decode()
        return ""


class _Blame:
    """Turns the error of a broken connection into the loss of a process."""

    def __init__(self, peers: Peers, other: int) -> None:
        self._peers = peers
        self._other = other

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any):
        if not isinstance(error, RuntimeError):
            return
        lost = self._peers.lost(self._other)
        if lost is None:
            raise SystemExit(1) from error
        raise lost from error


def pack(tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Returns tensors as a header, which is of fixed size, and bytes."""
    kinds = [(str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for tensor in tensors]
    text = json.dumps(kinds).encode()
    start = _aligned(len(text))
    content = torch.empty(start + sum(_aligned(t.nbytes) for t in tensors), dtype=torch.uint8)
    content[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    for tensor in tensors:
        place = content[start : start + tensor.nbytes].view(tensor.dtype)
        place.view(tensor.shape).copy_(tensor)
        start += _aligned(tensor.nbytes)
    return torch.tensor([len(content), len(text)]), content


def unpack(content: Tensor, length: int) -> list[Tensor]:
    """Returns the tensors of a message, in the memory of its bytes."""
    kinds = json.loads(content[:length].numpy().tobytes())
    tensors: list[Tensor] = []
    start = _aligned(length)
    for name, shape in kinds:
        dtype: torch.dtype = getattr(torch, name)
        size = dtype.itemsize * torch.Size(shape).numel()
        tensors.append(content[start : start + size].view(dtype).view(shape))
        start += _aligned(size)
    return tensors


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
