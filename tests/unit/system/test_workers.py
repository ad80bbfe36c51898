import threading
from collections.abc import Iterator

import pytest
import torch

from knowformer.system.workers import Workers, torch_on_one_core


@pytest.fixture(autouse=True)
def three_torch_threads() -> Iterator[None]:
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


def threads_of_a_new_thread() -> int:
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return seen[0]


def test_results_come_in_the_order_of_the_items() -> None:
    workers = Workers(3)
    assert workers.map(lambda n: n * n, range(20)) == [n * n for n in range(20)]
    assert list(workers.imap(lambda n: n * n, range(20))) == [n * n for n in range(20)]


def test_the_first_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        Workers(2).map(lambda n: 1 // n, [1, 0, 2])


def test_a_worker_runs_torch_on_one_core() -> None:
    assert set(Workers(2).map(lambda _: torch.get_num_threads(), range(8))) == {1}


def test_torch_gets_its_threads_back_after_nested_blocks() -> None:
    with torch_on_one_core():
        with torch_on_one_core():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_torch_gets_its_threads_back_when_blocks_of_two_threads_overlap() -> None:
    first_in, second_in, first_may_go = (threading.Event() for _ in range(3))

    def first() -> None:
        with torch_on_one_core():
            first_in.set()
            assert first_may_go.wait(30)

    def second() -> None:
        with torch_on_one_core():
            second_in.set()
            other.join()

    other = threading.Thread(target=first)
    other.start()
    assert first_in.wait(30)
    late = threading.Thread(target=second)
    late.start()
    assert second_in.wait(30)
    first_may_go.set()
    late.join()
    assert torch.get_num_threads() == 3
    assert threads_of_a_new_thread() == 3
