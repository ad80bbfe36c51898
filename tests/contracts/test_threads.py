"""``Backend.across``: threads that share the rows of a single query do not change a bit."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from knowformer.kernels.interface import Backend, select_backend
from knowformer.system.workers import shared_workers
from tests.contracts.accuracy import (
    assert_same,
    draw_inputs,
    each_compiled,
    is_exact,
    outputs_and_gradients,
    random_edges,
    view_of,
)
from tests.contracts.operations import ATTENDS, HOPS, WITH_KERNEL, Operation

ParallelMap = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]


def last_first(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """As if the last thread were the fastest."""
    return [function(item) for item in reversed(list(items))][::-1]


MAPS: dict[str, ParallelMap] = {
    "two threads": shared_workers(2).map,
    "three threads": shared_workers(3).map,
    "last first": last_first,
}
each_map = pytest.mark.parametrize("parallel_map", MAPS.values(), ids=MAPS)
each_operation = pytest.mark.parametrize(
    "operation", WITH_KERNEL, ids=lambda operation: operation.name
)

# Two chunks of sums and a bit; ``SUM_CHUNK`` is 4080.
MANY = 9000


def assert_equal_across(
    backend_name: str, operation: Operation, backend: Backend, parallel_map: ParallelMap,
    *, num_entities: int, num_queries: int, width: int,
) -> None:  # fmt: skip
    view = view_of(random_edges(num_entities, 2 * num_entities), num_queries)
    inputs = draw_inputs(operation, view, width=width)
    alone = outputs_and_gradients(operation, backend, inputs, view)
    divided = outputs_and_gradients(operation, backend.across(parallel_map), inputs, view)
    for name, value in alone.items():
        assert_same(divided[name], value, bits=is_exact(backend_name, operation), what=name)


@each_compiled
@each_map
@each_operation
def test_a_large_query_divided_among_threads_has_the_same_bits(
    backend_name: str, backend: Backend, operation: Operation, parallel_map: ParallelMap
) -> None:
    assert_equal_across(
        backend_name, operation, backend, parallel_map,
        num_entities=MANY, num_queries=1, width=16,
    )  # fmt: skip


@each_compiled
@each_operation
@pytest.mark.parametrize(
    ("num_queries", "num_entities", "width"),
    [(1, 1, 16), (1, 48, 32), (1, 49, 16), (1, 500, 64), (3, 97, 32)],
)
def test_small_queries_and_several_have_the_same_bits(
    backend_name: str, backend: Backend, operation: Operation,
    num_queries: int, num_entities: int, width: int,
) -> None:  # fmt: skip
    assert_equal_across(
        backend_name, operation, backend, shared_workers(2).map,
        num_entities=num_entities, num_queries=num_queries, width=width,
    )  # fmt: skip


@pytest.mark.parametrize("operation", [HOPS[0], ATTENDS[0]], ids=lambda operation: operation.name)
def test_compiled_kernels_do_divide_a_query(operation: Operation) -> None:
    attention = pytest.importorskip("knowformer.kernels._cpu_attention")
    assert 2 * attention.SUM_CHUNK < MANY
    pieces: list[int] = []

    def counted(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        listed = list(items)
        pieces.append(len(listed))
        return last_first(function, listed)

    view = view_of(random_edges(MANY, MANY), 1)
    inputs = draw_inputs(operation, view)
    operation.apply(select_backend("cpu").across(counted), inputs, view)
    assert pieces
    assert min(pieces) >= 3
