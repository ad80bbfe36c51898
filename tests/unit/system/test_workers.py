import threading
import time
from collections.abc import Iterator

import pytest
import torch

from knowformer.system.workers import Workers, available_cores, shared_workers, torch_on_one_core


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


def test_results_come_in_order_whoever_ends_first() -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.02 if item == 0 else 0)
        return item * item

    workers = Workers(2)
    assert workers.map(slow_first, range(5)) == [0, 1, 4, 9, 16]
    assert list(workers.imap(slow_first, range(5))) == [0, 1, 4, 9, 16]


def test_an_error_of_a_worker_is_raised_to_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        Workers(2).map(lambda item: 1 // item, [1, 0])


def test_workers_are_made_once_for_each_number_of_threads() -> None:
    assert shared_workers(2) is shared_workers(2)
    assert shared_workers().threads == available_cores()


def test_torch_gets_its_threads_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), torch_on_one_core():
        _ = 1 // (torch.get_num_threads() - 1)
    assert torch.get_num_threads() == 3


def test_workers_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=10)
    Workers(2).map(lambda _: both.wait(), range(2))  # ends only when two threads are here


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
