"""The reference itself: against the formulas, loop by loop, and against finite differences."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from knowformer.kernels._attention import SIMILARITIES, attention
from knowformer.kernels.interface import Similarity, select_backend
from tests.contracts.accuracy import (
    GRAPHS,
    Facts,
    adjacency_of,
    draw_inputs,
    edges_of,
    in_float64,
    view_of,
)
from tests.contracts.operations import (
    HOPS,
    NUM_RELATIONS,
    SINGLE_STEPS,
    Inputs,
    Operation,
    apply_attend,
    draw_attend,
    flat,
)

NORM_EPSILON = 1e-5

GRADIENT_CASES = [
    pytest.param(operation, graph, id=f"{operation.name}, {graph}")
    for operation in SINGLE_STEPS
    for graph in ("random", "empty", "self-loops")
    if operation.has_gradients and (operation.uses_edges or graph == "random")
]


@pytest.mark.parametrize(("operation", "graph"), GRADIENT_CASES)
def test_gradients_of_the_reference_are_those_of_finite_differences(
    operation: Operation, graph: str
) -> None:
    num_entities, facts = GRAPHS[graph]
    num_entities = min(num_entities, 5)
    few = [(head % num_entities, relation, tail % num_entities) for head, relation, tail in facts]
    view = view_of(adjacency_of(few[:8], num_entities).edges, 2)
    inputs = in_float64(draw_inputs(operation, view, width=4))
    names = list(inputs)

    def apply(*tensors: Tensor) -> Tensor:
        named = dict(zip(names, tensors, strict=True))
        return operation.apply(select_backend("reference"), named, view)

    leaves = [tensor.requires_grad_() for tensor in inputs.values()]
    assert torch.autograd.gradcheck(apply, leaves)


# ---- a hop ---------------------------------------------------------------------------------------


def directed(facts: Facts) -> set[tuple[int, int, int]]:
    backwards = {(tail, relation + NUM_RELATIONS, head) for head, relation, tail in facts}
    return set(facts) | backwards


def naive_linear(weight: list[list[float]], bias: list[float], x: list[float]) -> list[float]:
    return [
        b + sum(w * value for w, value in zip(row, x, strict=True))
        for row, b in zip(weight, bias, strict=True)
    ]


def naive_hop(inputs: Inputs, facts: Facts, query: int, receiver: int) -> list[float]:
    """Design section 3: alpha z_u + sum over r(v, u) of z_v * relation_vector_r, then update."""
    states = inputs["states"][query].tolist()
    vectors = inputs["relation_vectors"][query].tolist()
    state = states[receiver]
    update = [alpha * z for alpha, z in zip(inputs["self_weight"].tolist(), state, strict=True)]
    for sender, relation, tail in directed(facts):
        if tail == receiver:
            for column in range(len(state)):
                update[column] += states[sender][column] * vectors[relation][column]
    number = 0
    while f"weight{number}" in inputs:
        if number:
            update = [max(0.0, value) for value in update]
        weight, bias = inputs[f"weight{number}"].tolist(), inputs[f"bias{number}"].tolist()
        update = naive_linear(weight, bias, update)
        number += 1
    if "gain" not in inputs:
        return update
    mean = sum(update) / len(update)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in update) / len(update) + NORM_EPSILON)
    gain, shift = inputs["gain"].tolist(), inputs["shift"].tolist()
    return [
        z + g * (x - mean) / deviation + b
        for z, g, x, b in zip(state, gain, update, shift, strict=True)
    ]


@pytest.mark.parametrize("operation", HOPS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("graph", ["random", "empty", "self-loops", "duplicate facts"])
def test_the_references_hop_is_the_formula(operation: Operation, graph: str) -> None:
    num_entities, facts = GRAPHS[graph]
    view = view_of(edges_of(graph), 2)
    inputs = in_float64(draw_inputs(operation, view, width=4))
    result = operation.apply(select_backend("reference"), inputs, view)
    expected = [naive_hop(inputs, facts, b, u) for b in range(2) for u in range(num_entities)]
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.double))


# ---- attention -----------------------------------------------------------------------------------


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def naive_features(x: list[float], directions: list[list[float]]) -> list[float]:
    """exp(x . w - |x|^2 / 2) / sqrt(F) for every direction w, F of them."""
    count = len(directions)
    return [math.exp(dot(x, w) - dot(x, x) / 2) / math.sqrt(count) for w in directions]


def naive_kappa(
    similarity: Similarity, q: list[float], k: list[float], directions: list[list[float]]
) -> float:
    if similarity == "linear":
        return 1 + dot(q, k)
    if similarity == "exponential":
        return math.exp(dot(q, k))
    return dot(naive_features(q, directions), naive_features(k, directions))


def naive_attention(
    similarity: Similarity,
    q: list[list[float]],
    k: list[list[float]],
    v: list[list[float]],
    attended: list[float],
    directions: list[list[float]],
) -> list[list[float]]:
    """out_u = [V v_u + sum_w a_w kappa(q_u, k_w) v_w] / [V + sum_w a_w kappa(q_u, k_w)]."""
    rows = []
    for query, value in zip(q, v, strict=True):
        kappa = [
            a * naive_kappa(similarity, query, key, directions)
            for key, a in zip(k, attended, strict=True)
        ]
        columns = [
            len(v) * value[column] + sum(s * row[column] for s, row in zip(kappa, v, strict=True))
            for column in range(len(value))
        ]
        rows.append([column / (len(v) + sum(kappa)) for column in columns])
    return rows


@pytest.mark.parametrize("is_weighed", [False, True], ids=["plain", "weighed"])
@pytest.mark.parametrize("num_entities", [1, 2, 7])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_references_attention_is_the_formula(
    similarity: Similarity, num_entities: int, is_weighed: bool
) -> None:
    draw = torch.Generator().manual_seed(0)
    q, k, v = torch.rand(3, 2, 2, num_entities, 3, generator=draw, dtype=torch.double)
    directions = torch.randn(2, 3, 5, generator=draw, dtype=torch.double)
    attended = torch.ones(2, 2, num_entities, 1, dtype=torch.double)
    if is_weighed:
        attended = torch.rand(attended.shape, generator=draw, dtype=torch.double)
        attended[..., -1, :] = 0.0
    result = attention(q, k, v, similarity, attended if is_weighed else None, directions)
    for query, head in product(range(2), range(2)):
        of_head = [tensor[query, head].tolist() for tensor in (q, k, v, attended[..., 0])]
        rows = naive_attention(similarity, *of_head, directions[head].T.tolist())
        torch.testing.assert_close(result[query, head], torch.tensor(rows, dtype=torch.double))


def test_the_references_layer_end_is_the_formula() -> None:
    """A = LN(x + out), X = LN(A + FFN(A)) (eq. 11), with q and k of unit length per head."""
    view = view_of(adjacency_of([], 6).edges, 2)
    inputs = in_float64(draw_attend(2, 6, 8, torch.Generator().manual_seed(0)))
    result = apply_attend(num_heads=2)(select_backend("reference"), inputs, view)

    def mapped(name: str, x: Tensor) -> Tensor:
        return x @ inputs[f"{name}_w"].T + inputs[f"{name}_b"]

    def normed(name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        deviation = (centred.square().mean(-1, keepdim=True) + NORM_EPSILON).sqrt()
        return centred / deviation * inputs[f"{name}_w"] + inputs[f"{name}_b"]

    gathered = torch.empty_like(inputs["states"])
    for head in (slice(0, 4), slice(4, 8)):
        q = mapped("query", inputs["query_key_states"])[..., head]
        k = mapped("key", inputs["query_key_states"])[..., head]
        unit_q, unit_k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
        values = inputs["value_states"][:, None, :, head]
        gathered[..., head] = attention(unit_q[:, None], unit_k[:, None], values, "linear")[:, 0]
    a = normed("attention_norm", inputs["states"] + gathered)
    expected = normed("output_norm", a + mapped("contract", mapped("expand", a).relu()))
    torch.testing.assert_close(result, flat(expected))
