"""Weights on messages and on attended entities, which explanations look into the model with."""

import pytest
import torch
from torch import Tensor

from knowformer.kernels.interface import Backend, QueryView, select_backend
from tests.contracts.accuracy import (
    adjacency_of,
    draw_inputs,
    edges_of,
    in_float64,
    random_edges,
    random_facts,
    view_of,
)
from tests.contracts.operations import (
    ATTENDS,
    HOPS,
    NUM_HOPS,
    STREAMS,
    Inputs,
    Operation,
    flat,
    pack_hop,
    states_of,
    stream_of,
)

WITH_MESSAGES = HOPS + STREAMS
each_with_messages = pytest.mark.parametrize("operation", WITH_MESSAGES, ids=lambda o: o.name)
each_attend = pytest.mark.parametrize("operation", ATTENDS, ids=lambda o: o.name)
each_width = pytest.mark.parametrize("width", [12, 16])  # without and with compiled kernels


def apply_weighed(
    operation: Operation, backend: Backend, inputs: Inputs, view: QueryView, weights: Tensor
) -> Tensor:
    """Applies a hop or a stream; every hop has the same weights on its messages."""
    if operation in HOPS:
        states, vectors = flat(inputs["states"]), inputs["relation_vectors"]
        return backend.hop(states, vectors, view, pack_hop(inputs), message_weights=weights)
    stream, vectors = stream_of(inputs)
    each = [weights] * NUM_HOPS
    return backend.stream(states_of(inputs), stream, vectors, view, message_weights=each)


def num_heads_of(operation: Operation) -> int:
    return {"four heads": 4, "dropout": 4, "one head": 1}.get(operation.name[8:], 2)


# ---- messages ------------------------------------------------------------------------------------


@each_with_messages
@each_width
def test_messages_that_count_once_are_messages_without_weights(
    backend: Backend, operation: Operation, width: int
) -> None:
    view = view_of(edges_of("random"))
    inputs = draw_inputs(operation, view, width=width)
    ones = torch.ones(len(view.edges.message))
    result = apply_weighed(operation, backend, inputs, view, ones)
    torch.testing.assert_close(result, operation.apply(backend, inputs, view), rtol=1e-4, atol=1e-4)


@each_with_messages
@each_width
def test_a_message_that_counts_nothing_was_not_sent(
    backend: Backend, operation: Operation, width: int
) -> None:
    view = view_of(edges_of("random"))
    inputs = draw_inputs(operation, view, width=width)
    whole = operation.apply(backend, inputs, view)
    for gone in (0, 17, len(view.edges.message) - 1):
        kept = torch.ones(len(view.edges.message), dtype=torch.bool)
        kept[gone] = False
        without = QueryView.whole(view.edges.keep(kept), view.heads)
        expected = operation.apply(backend, inputs, without)
        assert not torch.allclose(expected, whole, rtol=1e-3, atol=1e-3)
        result = apply_weighed(operation, backend, inputs, view, kept.float())
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("operation", [HOPS[0], STREAMS[0], STREAMS[3]], ids=lambda o: o.name)
@pytest.mark.parametrize("num_facts", [0, 6])
def test_gradients_of_messages_are_those_of_finite_differences(
    operation: Operation, num_facts: int
) -> None:
    edges = adjacency_of(random_facts(0, 4, num_facts), 4).edges
    view, backend = view_of(edges, 2), select_backend("reference")
    inputs = in_float64(draw_inputs(operation, view, width=4))
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(len(edges.message), generator=generator, dtype=torch.double)
    names = [name for name in operation.queries if name in inputs]

    def apply(weights: Tensor, *tensors: Tensor) -> Tensor:
        drawn = inputs | dict(zip(names, tensors, strict=True))
        return apply_weighed(operation, backend, drawn, view, weights)

    leaves = [weights, *(inputs[name] for name in names)]
    assert torch.autograd.gradcheck(apply, [leaf.requires_grad_() for leaf in leaves])


# ---- attended entities ---------------------------------------------------------------------------


@each_attend
@each_width
def test_entities_that_count_once_are_entities_without_weights(
    backend: Backend, operation: Operation, width: int
) -> None:
    view = view_of(edges_of("random"))
    inputs = draw_inputs(operation, view, width=width)
    ones = torch.ones(view.num_rows, num_heads_of(operation))
    result = operation.apply(backend, inputs, view, ones)
    torch.testing.assert_close(result, operation.apply(backend, inputs, view), rtol=1e-4, atol=1e-4)


@each_attend
def test_gradients_of_attended_entities_are_those_of_finite_differences(
    operation: Operation,
) -> None:
    view, backend = view_of(adjacency_of([], 4).edges, 2), select_backend("reference")
    inputs = in_float64(draw_inputs(operation, view, width=4))
    generator = torch.Generator().manual_seed(1)
    shape = (view.num_rows, num_heads_of(operation))
    attended = torch.rand(shape, generator=generator, dtype=torch.double)

    def apply(attended: Tensor, query_key_states: Tensor, value_states: Tensor) -> Tensor:
        states = {"query_key_states": query_key_states, "value_states": value_states}
        return operation.apply(backend, inputs | states, view, attended)

    leaves = (attended, inputs["query_key_states"], inputs["value_states"])
    assert torch.autograd.gradcheck(apply, [leaf.requires_grad_() for leaf in leaves])


# ---- graphs of different sizes -------------------------------------------------------------------


def joined(*sizes: int) -> QueryView:
    views = [view_of(random_edges(size, 3 * size, seed=size), 1) for size in sizes]
    return QueryView.join(views)


def drawn_for(operation: Operation, view: QueryView) -> Inputs:
    """Inputs for queries of a ragged batch."""
    whole = view_of(random_edges(int(view.num_rows), 1), 1)
    inputs = draw_inputs(operation, whole)
    if "relation_vectors" in inputs:
        inputs["relation_vectors"] = inputs["relation_vectors"].repeat(len(view), 1, 1)
    return inputs


def test_weights_follow_their_messages_into_every_graph(backend: Backend) -> None:
    view, operation = joined(5, 31), HOPS[0]
    inputs = drawn_for(operation, view)
    weights = torch.rand(len(view.edges.message), generator=torch.Generator().manual_seed(0))
    result = apply_weighed(operation, backend, inputs, view, weights)
    first_edge = 0
    for (alone, rows), number in zip(view.one_by_one(), range(len(view)), strict=True):
        last_edge = first_edge + len(alone.edges.message)
        one = inputs | {
            "states": flat(inputs["states"])[rows],
            "relation_vectors": inputs["relation_vectors"][number : number + 1],
        }
        expected = apply_weighed(operation, backend, one, alone, weights[first_edge:last_edge])
        torch.testing.assert_close(result[rows], expected, rtol=1e-4, atol=1e-4)
        first_edge = last_edge


def test_weights_follow_their_entities_into_every_graph(backend: Backend) -> None:
    view, operation = joined(5, 31), ATTENDS[0]
    inputs = drawn_for(operation, view)
    shape = (view.num_rows, num_heads_of(operation))
    attended = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    result = operation.apply(backend, inputs, view, attended)
    for alone, rows in view.one_by_one():
        one = {
            name: flat(tensor)[rows] if name in operation.queries else tensor
            for name, tensor in inputs.items()
        }
        expected = operation.apply(backend, one, alone, attended[rows])
        torch.testing.assert_close(result[rows], expected, rtol=1e-4, atol=1e-4)
