import importlib
from typing import Any

import pytest
import torch

from knowformer.training.peers import Peers, pack, unpack


def three_peers() -> list[Peers]:
    gloo: Any = importlib.import_module("torch.distributed")
    store = gloo.HashStore()
    return [Peers(None, store, number=number, size=3) for number in range(3)]


def test_a_message_holds_tensors_of_any_type_and_shape() -> None:
    tensors = [
        torch.tensor(1.5, dtype=torch.double),
        torch.arange(6.0).view(2, 3).T,
        torch.tensor([True, False, True]),
        torch.zeros(0, 4),
        torch.tensor([2**40, -1]),
    ]
    header, content = pack(tensors)
    found = unpack(content, int(header[1]))
    assert len(content) == int(header[0])
    for sent, received in zip(tensors, found, strict=True):
        assert sent.dtype == received.dtype
        assert torch.equal(sent, received)


def test_what_was_sent_is_not_what_may_change_later() -> None:
    weights = torch.ones(3)
    header, content = pack([weights])
    weights.zero_()
    assert unpack(content, int(header[1]))[0].tolist() == [1.0, 1.0, 1.0]


def test_a_process_that_died_is_named_by_the_first_of_the_others() -> None:
    peers = three_peers()
    lost = peers[0].lost(2)
    assert lost is not None
    assert "rank 2 (process " in str(lost)
    assert "`resume=True`" in str(lost)
    assert peers[1].lost(2) is None  # rank 0 says it


def test_if_the_first_process_died_the_second_says_so() -> None:
    peers = three_peers()
    lost = peers[1].lost(0)
    assert lost is not None
    assert "rank 0 (process " in str(lost)
    assert peers[2].lost(0) is None


def test_a_process_that_left_because_of_another_is_not_blamed() -> None:
    peers = three_peers()
    assert peers[1].lost(2) is None  # it leaves, and rank 0 finds it gone
    lost = peers[0].lost(1)
    assert lost is not None
    assert "rank 2" in str(lost)


def test_nobody_speaks_for_a_process_that_has_said_why_it_leaves() -> None:
    peers = three_peers()
    peers[2].leave()
    assert peers[1].lost(2) is None
    assert peers[0].lost(1) is None


@pytest.mark.parametrize("size", [1, 7, 8, 9])
def test_tensors_of_a_message_are_aligned(size: int) -> None:
    tensors = [torch.zeros(size, dtype=torch.uint8), torch.tensor([1.0], dtype=torch.double)]
    header, content = pack(tensors)
    assert unpack(content, int(header[1]))[1].item() == 1.0
