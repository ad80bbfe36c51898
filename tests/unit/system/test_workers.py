import threading
import time

import pytest
import torch

from knowformer.system.workers import Workers, available_cores, shared_workers, torch_on_one_core


def test_results_come_in_order_whoever_ends_first() -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.02 if item == 0 else 0)
        return item * item

    assert Workers(2).map(slow_first, range(5)) == [0, 1, 4, 9, 16]


def test_an_error_of_a_worker_is_raised_to_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        Workers(2).map(lambda item: 1 // item, [1, 0])


def test_workers_run_side_by_side_and_torch_on_one_core_in_each() -> None:
    both = threading.Barrier(2, timeout=10)

    def meet(_: int) -> int:
        both.wait()  # ends only when two threads are here
        return torch.get_num_threads()

    assert Workers(2).map(meet, range(2)) == [1, 1]


def test_workers_are_made_once_for_each_number_of_threads() -> None:
    assert shared_workers(2) is shared_workers(2)
    assert shared_workers().threads == available_cores()


def test_torch_gets_its_threads_back_after_an_error() -> None:
    torch.set_num_threads(2)
    with pytest.raises(ZeroDivisionError), torch_on_one_core():
        _ = 1 // (torch.get_num_threads() - 1)
    assert torch.get_num_threads() == 2
