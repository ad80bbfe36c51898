"""Queries that see graphs of different sizes, in one batch: each as if it were alone on its own."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from knowformer.kernels.interface import NO_HEAD, Backend, QueryView, select_backend
from tests.contracts.accuracy import (
    KERNEL_WIDTHS,
    adjacency_of,
    assert_same,
    assert_within_budget,
    draw_downstream,
    draw_inputs,
    each_compiled,
    in_float64,
    is_exact,
    outputs_and_gradients,
    random_edges,
)
from tests.contracts.operations import (
    DIFFERENTIABLE,
    OF_ROWS,
    SINGLE_STEPS,
    STREAMS,
    Inputs,
    Operation,
    apply_stream_step_by_step,
)

each_operation = pytest.mark.parametrize(
    "operation", DIFFERENTIABLE, ids=lambda operation: operation.name
)

# Graphs that end within a block and at its edge, one shared by two queries, one of a single entity
# that has no edges at all.
VIEWS = [
    QueryView.whole(random_edges(5, 9, seed=0), torch.tensor([4])),
    QueryView.whole(random_edges(48, 120, seed=1), torch.tensor([47])),
    QueryView.whole(random_edges(97, 230, seed=2), torch.tensor([0, 96])),
    QueryView.whole(adjacency_of([], 1).edges, torch.tensor([0])),
    QueryView.whole(random_edges(23, 60, seed=3), torch.tensor([NO_HEAD])),
]
JOINED = QueryView.join(VIEWS)


@dataclass(frozen=True)
class Batch:
    """Inputs of the joined view, and those of each query by itself."""

    inputs: Inputs
    alone: list[tuple[QueryView, Inputs]]


def draw_batch(operation: Operation, *, width: int, seed: int = 0) -> Batch:
    of_views = [draw_inputs(operation, view, width=width, seed=seed) for view in VIEWS]
    weights = of_views[0]
    inputs: Inputs = {}
    for name, tensor in weights.items():
        if name in operation.queries:
            tensors = [of_view[name] for of_view in of_views]
            inputs[name] = torch.cat([t.flatten(0, 1) if name in OF_ROWS else t for t in tensors])
        elif is_per_entity(name, tensor):
            inputs[name] = torch.cat([of_view[name] for of_view in of_views])
        else:
            inputs[name] = tensor
    alone: list[tuple[QueryView, Inputs]] = []
    for view, of_view in zip(VIEWS, of_views, strict=True):
        for number in range(len(view)):
            one = {n: t[number : number + 1] for n, t in of_view.items() if n in operation.queries}
            entities = {n: t for n, t in of_view.items() if is_per_entity(n, weights[n])}
            head = view.heads[number : number + 1]
            alone.append((QueryView.whole(view.edges, head), weights | entities | one))
    return Batch(inputs, alone)


def is_per_entity(name: str, of_first_view: Tensor) -> bool:
    return name == "extra" and len(of_first_view) > 1


@each_operation
@pytest.mark.parametrize("width", KERNEL_WIDTHS)
def test_a_query_has_the_bits_it_has_alone_on_its_graph(
    backend_name: str, backend: Backend, operation: Operation, width: int
) -> None:
    batch = draw_batch(operation, width=width)
    result = operation.apply(backend, batch.inputs, JOINED)
    downstream = draw_downstream(result)
    together = outputs_and_gradients(operation, backend, batch.inputs, JOINED, downstream)
    exact = is_exact(backend_name, operation)
    for number, (view, inputs) in enumerate(batch.alone):
        rows = slice(int(JOINED.offsets[number]), int(JOINED.offsets[number + 1]))
        alone = outputs_and_gradients(operation, backend, inputs, view, downstream[rows])
        assert_same(together["result"][rows], alone["result"], bits=exact, what=f"query {number}")
        for name in set(operation.queries) & set(inputs):
            gradient, expected = together[f"gradient of {name}"], alone[f"gradient of {name}"]
            if name in OF_ROWS:
                gradient, expected = gradient[rows], expected.flatten(0, 1)
            else:
                gradient = gradient[number : number + 1]
            assert_same(gradient, expected, bits=exact, what=f"{name}, query {number}")


@each_operation
def test_the_gradients_of_weights_are_the_sums_over_all_queries(operation: Operation) -> None:
    """In double precision, where the order of a sum makes no difference to speak of."""
    reference = select_backend("reference")
    batch = draw_batch(operation, width=8)
    inputs = in_float64(batch.inputs)
    downstream = draw_downstream(operation.apply(reference, inputs, JOINED))
    together = outputs_and_gradients(operation, reference, inputs, JOINED, downstream)
    sums: Inputs = {}
    for number, (view, one) in enumerate(batch.alone):
        rows = slice(int(JOINED.offsets[number]), int(JOINED.offsets[number + 1]))
        alone = outputs_and_gradients(operation, reference, in_float64(one), view, downstream[rows])
        for name in batch.inputs.keys() - set(operation.queries):
            if not is_per_entity(name, batch.inputs[name]):
                gradient = alone[f"gradient of {name}"]
                sums[name] = sums[name] + gradient if name in sums else gradient
    assert sums
    for name, total in sums.items():
        torch.testing.assert_close(together[f"gradient of {name}"], total)


@each_compiled
@pytest.mark.parametrize(
    "operation", [step for step in SINGLE_STEPS if step.has_gradients], ids=lambda step: step.name
)
@pytest.mark.parametrize("width", KERNEL_WIDTHS)
def test_errors_stay_within_the_budget(backend: Backend, operation: Operation, width: int) -> None:
    draws = [draw_batch(operation, width=width, seed=seed).inputs for seed in range(3)]
    assert_within_budget(operation, backend, draws, JOINED)


@each_compiled
@pytest.mark.parametrize("operation", STREAMS, ids=lambda stream: stream.name)
@pytest.mark.parametrize("width", KERNEL_WIDTHS)
def test_a_stream_has_the_bits_of_its_input_and_its_hops(
    backend_name: str, backend: Backend, operation: Operation, width: int
) -> None:
    step_by_step = replace(operation, apply=apply_stream_step_by_step)
    inputs = draw_batch(operation, width=width).inputs
    expected = outputs_and_gradients(step_by_step, backend, inputs, JOINED)
    for name, value in outputs_and_gradients(operation, backend, inputs, JOINED).items():
        assert_same(value, expected[name], bits=is_exact(backend_name, operation), what=name)


@each_operation
def test_some_queries_of_a_batch_have_the_bits_they_have_in_it(
    backend_name: str, backend: Backend, operation: Operation
) -> None:
    inputs = draw_batch(operation, width=16).inputs
    together = operation.apply(backend, inputs, JOINED)
    for first, last in ((0, 2), (2, 4), (3, 6), (5, 6)):
        rows = slice(int(JOINED.offsets[first]), int(JOINED.offsets[last]))
        some = {
            name: tensor[rows if name in OF_ROWS else slice(first, last)]
            if name in operation.queries
            else tensor
            for name, tensor in inputs.items()
        }
        result = operation.apply(backend, some, JOINED.queries(first, last))
        exact = is_exact(backend_name, operation)
        assert_same(result, together[rows], bits=exact, what=f"queries {first} to {last}")
