"""One suite for every kernel backend: registering a backend is enough for it to be tested here.

The reference in float64 is the truth, and is itself compared with plain Python loops. A backend in
float32 may err at most twice as much as the reference in float32 does, gradients included.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from knowformer.errors import BackendUnavailableError
from knowformer.graph.adjacency import Adjacency
from knowformer.kernels._reference import dense_attention, feature_attention, linear_attention
from knowformer.kernels.interface import (
    AttendWeights,
    Backend,
    Dropout,
    Edges,
    HopWeights,
    InputWeights,
    ScoreWeights,
    Similarity,
    backend_names,
    select_backend,
)

Inputs = dict[str, Tensor]
Facts = list[tuple[int, int, int]]

NUM_RELATIONS = 3
NORM_EPSILON = 1e-5

# BLAS picks a routine by the shape of the whole batch, and torch splits some sums by thread: the
# last bits of the reference may follow either, on some CPUs. A kernel of our own has no excuse.
ROUNDED_BY_BLAS = ("reference",)
KERNEL_WIDTHS = (16, 32, 64)  # a backend may hand other widths to the reference


# Operations: named tensors in, one tensor out.


@dataclass(frozen=True)
class Operation:
    """One kernel: how to draw its inputs and how to call it."""

    name: str
    draw: Callable[[int, int, int, torch.Generator], Inputs]  # batch, entities, width
    apply: Callable[[Backend, Inputs, Edges], Tensor]
    queries: tuple[str, ...]  # inputs with one row per query; the others are weights
    uses_edges: bool = False
    has_kernel: bool = True  # False: every backend leaves it to the reference
    has_gradients: bool = True


def draw_hop(num_linear: int, has_norm: bool) -> Callable[..., Inputs]:
    def draw(batch: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator)

        inputs = {
            "states": normal(batch, entities, width),
            "relation_vectors": normal(batch, 2 * NUM_RELATIONS, width),
            "self_weight": normal(width),
        }
        for number in range(num_linear):
            inputs[f"weight{number}"] = normal(width, width) / width**0.5
            inputs[f"bias{number}"] = normal(width)
        if has_norm:
            inputs |= {"gain": 1 + 0.1 * normal(width), "shift": normal(width)}
        return inputs

    return draw


def pack_hop(inputs: Inputs) -> HopWeights:
    numbers = range(sum(name.startswith("weight") for name in inputs))
    return HopWeights.pack(
        inputs["self_weight"],
        [(inputs[f"weight{number}"], inputs[f"bias{number}"]) for number in numbers],
        (inputs["gain"], inputs["shift"]) if "gain" in inputs else None,
    )


def apply_hop(backend: Backend, inputs: Inputs, edges: Edges) -> Tensor:
    return backend.hop(inputs["states"], inputs["relation_vectors"], edges, pack_hop(inputs))


def normal_tensors(generator: torch.Generator, **shapes: tuple[int, ...]) -> Inputs:
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def draw_input(*, with_states: bool, per_entity: bool, with_head: bool) -> Callable[..., Inputs]:
    def draw(batch: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
        inputs = normal_tensors(
            generator,
            extra=(entities if per_entity else 1, width),
            first=(width, width),
            second=(width, width),
            bias=(width,),
            # Gives the operation its batch size when there are no states.
            shift=(batch, 1, 1),
        )
        inputs["first"] /= width**0.5
        inputs["second"] /= width**0.5
        if with_states:
            inputs |= normal_tensors(generator, states=(batch, entities, width))
        if with_head:
            inputs |= normal_tensors(generator, bonus=(width,))
        return inputs

    return draw


def apply_input(backend: Backend, inputs: Inputs, edges: Edges) -> Tensor:
    result = backend.stream_input(
        inputs.get("states"),
        inputs["extra"],
        pack_input(inputs),
        heads=heads_of(inputs, edges) if "bonus" in inputs else None,
        num_queries=len(inputs["shift"]),
        num_entities=edges.num_entities,
    )
    return result + inputs["shift"]


def pack_input(inputs: Inputs) -> InputWeights:
    second = (inputs["second"], inputs["bias"])
    return InputWeights.pack(inputs["first"], second, inputs.get("bonus"))


def heads_of(inputs: Inputs, edges: Edges) -> Tensor:
    """Heads that follow each query's own number, so that they stay the same among other mates."""
    return (inputs["shift"].detach().flatten() * 1e4).long().abs() % edges.num_entities


SPREAD_HOPS = 2


def draw_spread(num_linear: int, has_norm: bool) -> Callable[..., Inputs]:
    draw_start = draw_input(with_states=False, per_entity=False, with_head=True)
    draw_one_hop = draw_hop(num_linear, has_norm)

    def draw(batch: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
        inputs = draw_start(batch, entities, width, generator)
        for number in range(SPREAD_HOPS):
            hop = draw_one_hop(1, entities, width, generator)
            del hop["states"]
            inputs |= {f"{number} {name}": tensor for name, tensor in hop.items()}
        return inputs

    return draw


def hops_of(inputs: Inputs) -> list[Inputs]:
    return [
        {name[2:]: tensor for name, tensor in inputs.items() if name.startswith(f"{number} ")}
        for number in range(SPREAD_HOPS)
    ]


def plain_states(
    backend: Backend, inputs: Inputs, edges: Edges, *, heads: Tensor | None
) -> list[Tensor]:
    """Returns the states after 0, 1, ... hops, each computed for every entity."""
    size = 1 if heads is None else len(heads)
    start, entities = pack_input(inputs), edges.num_entities
    states = [
        backend.stream_input(
            None, inputs["extra"], start, heads=heads, num_queries=size, num_entities=entities
        )
    ]
    for hop in hops_of(inputs):
        vectors = hop["relation_vectors"].expand(size, -1, -1)
        states.append(backend.hop(states[-1], vectors, edges, pack_hop(hop)))
    return states


def apply_spread(backend: Backend, inputs: Inputs, edges: Edges) -> Tensor:
    hops = hops_of(inputs)
    return backend.spread(
        plain_states(backend, inputs, edges, heads=None),
        inputs["extra"],
        pack_input(inputs),
        [pack_hop(hop) for hop in hops],
        [hop["relation_vectors"] for hop in hops],
        edges,
        heads=heads_of(inputs, edges),
    )


LINEAR_MAPS = ("query", "key", "expand", "contract")
NORMS = ("attention_norm", "output_norm")


def draw_attend(batch: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
    whole = (batch, entities, width)
    inputs = normal_tensors(generator, states=whole, query_key_states=whole, value_states=whole)
    for name in LINEAR_MAPS:
        inputs |= normal_tensors(generator, **{f"{name}_w": (width, width), f"{name}_b": (width,)})
        inputs[f"{name}_w"] /= width**0.5
    for name in NORMS:
        inputs |= normal_tensors(generator, **{f"{name}_w": (width,), f"{name}_b": (width,)})
        inputs[f"{name}_w"] = 1 + 0.1 * inputs[f"{name}_w"]
    return inputs


def pack_attend(
    pairs: dict[str, tuple[Tensor, Tensor]], similarity: Similarity, features: Tensor
) -> AttendWeights:
    return AttendWeights.pack(
        (pairs["query"], pairs["key"]),
        pairs["attention_norm"],
        (pairs["expand"], pairs["contract"]),
        pairs["output_norm"],
        similarity,
        features,
    )


def random_bytes(states: Tensor) -> Tensor:
    """Bytes that follow each query's own numbers, so that they stay the same among other mates."""
    return (states.detach().abs() * 1e3).long().remainder(256).to(torch.uint8).contiguous()


def apply_attend(
    *, num_heads: int, similarity: Similarity = "linear", threshold: int = 0
) -> Callable[..., Tensor]:
    def apply(backend: Backend, inputs: Inputs, edges: Edges) -> Tensor:
        states = inputs["states"]
        assert states.shape[1] == edges.num_entities
        pairs = {name: (inputs[f"{name}_w"], inputs[f"{name}_b"]) for name in LINEAR_MAPS + NORMS}
        heads = num_heads if states.shape[-1] % num_heads == 0 else 1
        shape = (heads, states.shape[-1] // heads, 7)
        features = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        return backend.attend(
            states,
            inputs["query_key_states"],
            inputs["value_states"],
            pack_attend(pairs, similarity, features),
            num_heads=heads,
            dropout=Dropout(random_bytes(states.float()), threshold) if threshold else None,
        )

    return apply


FINISH_MAPS = ("expand", "contract")


def draw_finish(batch: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
    inputs = draw_attend(batch, entities, width, generator)
    names = ("states", "value_states", *(f"{n}_{x}" for n in FINISH_MAPS + NORMS for x in "wb"))
    return {name: inputs[name] for name in names}


def apply_finish(threshold: int) -> Callable[..., Tensor]:
    def apply(backend: Backend, inputs: Inputs, edges: Edges) -> Tensor:
        states = inputs["states"]
        assert states.shape[1] == edges.num_entities
        pairs = {name: (inputs[f"{name}_w"], inputs[f"{name}_b"]) for name in FINISH_MAPS + NORMS}
        feed_forward = (pairs["expand"], pairs["contract"])
        return backend.finish_layer(
            states,
            inputs["value_states"],
            AttendWeights.pack(None, pairs["attention_norm"], feed_forward, pairs["output_norm"]),
            dropout=Dropout(random_bytes(states.float()), threshold) if threshold else None,
        )

    return apply


def draw_score(batch: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
    inputs = normal_tensors(
        generator,
        states=(batch, entities, width),
        hidden_w=(width, width),
        hidden_b=(width,),
        last_w=(1, width),
        last_b=(1,),
    )
    inputs["hidden_w"] /= width**0.5
    return inputs


def apply_score(backend: Backend, inputs: Inputs, edges: Edges) -> Tensor:
    assert inputs["states"].shape[1] == edges.num_entities
    pairs = {name: (inputs[f"{name}_w"], inputs[f"{name}_b"]) for name in ("hidden", "last")}
    return backend.score(inputs["states"], ScoreWeights.pack(**pairs))


ATTEND_QUERIES = ("states", "query_key_states", "value_states")
INPUT_QUERIES = ("states", "shift")


def attend_operation(name: str, **settings: Any) -> Operation:
    has_kernel = settings.get("similarity", "linear") == "linear"
    apply = apply_attend(**settings)
    return Operation(f"attend, {name}", draw_attend, apply, ATTEND_QUERIES, has_kernel=has_kernel)


def input_operation(name: str, **settings: bool) -> Operation:
    return Operation(f"stream_input, {name}", draw_input(**settings), apply_input, INPUT_QUERIES)


def finish_operation(name: str, threshold: int) -> Operation:
    queries = ("states", "value_states")
    apply = apply_finish(threshold)
    return Operation(f"finish_layer, {name}", draw_finish, apply, queries, has_kernel=False)


def spread_operation(name: str, num_linear: int, *, has_norm: bool) -> Operation:
    draw = draw_spread(num_linear, has_norm)
    return Operation(
        f"spread, {name}", draw, apply_spread, ("shift",), uses_edges=True, has_gradients=False
    )


HOP_QUERIES = ("states", "relation_vectors")
SPREADS = [
    spread_operation("released form", 2, has_norm=True),
    spread_operation("paper's form", 3, has_norm=False),
]
OPERATIONS = [
    Operation("hop, released form", draw_hop(2, has_norm=True), apply_hop, HOP_QUERIES, True),
    Operation("hop, paper's form", draw_hop(3, has_norm=False), apply_hop, HOP_QUERIES, True),
    input_operation("query stream", with_states=True, per_entity=True, with_head=False),
    input_operation("value stream", with_states=True, per_entity=False, with_head=True),
    input_operation("first query stream", with_states=False, per_entity=True, with_head=False),
    input_operation("first value stream", with_states=False, per_entity=False, with_head=True),
    Operation("score", draw_score, apply_score, ("states",)),
    attend_operation("four heads", num_heads=4),
    attend_operation("one head", num_heads=1),
    attend_operation("dropout", num_heads=4, threshold=80),
    attend_operation("exponential", num_heads=2, similarity="exponential"),
    attend_operation("random features", num_heads=2, similarity="random_features"),
    finish_operation("plain", threshold=0),
    finish_operation("dropout", threshold=80),
    *SPREADS,
]
HOPS = [operation for operation in OPERATIONS if operation.apply is apply_hop]
WITH_KERNEL = [operation for operation in OPERATIONS if operation.has_kernel]


# Graphs: the shapes that go wrong first.


def random_facts(seed: int, num_entities: int, num_facts: int) -> Facts:
    draw = torch.Generator().manual_seed(seed)
    sizes = (num_entities, NUM_RELATIONS, num_entities)
    columns = [torch.randint(size, (num_facts,), generator=draw).tolist() for size in sizes]
    return list(zip(*columns, strict=True))


GRAPHS: dict[str, tuple[int, Facts]] = {
    "random": (23, random_facts(0, 23, 70)),
    "empty": (5, []),
    "one entity": (1, []),
    "one entity with a self-loop": (1, [(0, 1, 0)]),
    "isolated entities at both ends": (9, [(2, 0, 5), (5, 1, 3), (3, 2, 2)]),
    "self-loops": (4, [(0, 0, 0), (1, 1, 1), (0, 2, 1), (3, 0, 3)]),
    "duplicate facts": (4, [(0, 0, 1), (0, 0, 1), (1, 2, 3), (0, 0, 1)]),
    "hub with every edge": (40, [(0, relation, tail) for relation in (0, 2) for tail in range(40)]),
}
WIDTHS = (5, 12, 16, 32, 64)


def edges_of(graph: str) -> Edges:
    num_entities, facts = GRAPHS[graph]
    return adjacency_of(facts, num_entities).edges


def adjacency_of(facts: Facts, num_entities: int) -> Adjacency:
    numbered = torch.tensor(facts, dtype=torch.long).reshape(-1, 3)
    return Adjacency(numbered, num_entities=num_entities, num_relations=NUM_RELATIONS)


def draw_inputs(
    operation: Operation, edges: Edges, *, width: int = 16, batch: int = 3, seed: int = 0
) -> Inputs:
    generator = torch.Generator().manual_seed(seed)
    return operation.draw(batch, edges.num_entities, width, generator)


def several_draws(operation: Operation, edges: Edges, **settings: int) -> list[Inputs]:
    return [draw_inputs(operation, edges, seed=seed, **settings) for seed in range(3)]


def outputs_and_gradients(
    operation: Operation, backend: Backend, inputs: Inputs, edges: Edges
) -> Inputs:
    """Returns the result and the gradient of every input, for a fixed gradient of the result."""
    if not operation.has_gradients:
        with torch.no_grad():
            return {"result": operation.apply(backend, inputs, edges)}
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    result = operation.apply(backend, leaves, edges)
    downstream = torch.randn(result.shape, generator=torch.Generator().manual_seed(99))
    gradients = torch.autograd.grad(
        result, list(leaves.values()), downstream.to(result.dtype), allow_unused=True
    )
    found = {"result": result.detach()}
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        found[f"gradient of {name}"] = torch.zeros_like(leaf) if gradient is None else gradient
    return found


def in_float64(inputs: Inputs) -> Inputs:
    return {name: tensor.double() for name, tensor in inputs.items()}


def max_error(value: Tensor, truth: Tensor) -> float:
    return (value.double() - truth).abs().max().item() if truth.numel() else 0.0


def assert_within_budget(
    operation: Operation,
    backend: Backend,
    draws: list[Inputs],
    edges: Edges,
    *,
    in_a_running_sum: int = 0,
) -> None:
    """Compares the largest errors over the draws: of a single draw they are a matter of luck.

    The gradient of a weight sums over every row of the batch. Kernels add one row after the other,
    torch pairwise; the error of a running sum of n numbers without bias grows like a random walk,
    with the root of n. Given ``in_a_running_sum``, the number of rows, weights may err so much.
    """
    reference = select_backend("reference")
    weights = draws[0].keys() - set(operation.queries)
    errors: dict[str, float] = {}
    budgets: dict[str, float] = {}
    for inputs in draws:
        truth = outputs_and_gradients(operation, reference, in_float64(inputs), edges)
        plain = outputs_and_gradients(operation, reference, inputs, edges)
        fast = outputs_and_gradients(operation, backend, inputs, edges)
        for name, value in truth.items():
            assert fast[name].dtype == torch.float32
            assert fast[name].shape == value.shape
            # Beside it the last place of the largest number: no kernel rounds better than that.
            last_place = 2.0**-23 * value.abs().max().item() if value.numel() else 0.0
            budget = 2 * max_error(plain[name], value) + last_place + 1e-7
            if in_a_running_sum and name.removeprefix("gradient of ") in weights:
                budget = max(budget, 0.5 * last_place * in_a_running_sum**0.5)
            budgets[name] = max(budgets.get(name, 0.0), budget)
            errors[name] = max(errors.get(name, 0.0), max_error(fast[name], value))
    for name, error in errors.items():
        assert error <= budgets[name], f"{name}: error {error:.2e}, budget {budgets[name]:.2e}"


@pytest.fixture(params=backend_names())
def backend_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def backend(backend_name: str) -> Backend:
    try:
        return select_backend(backend_name)
    except BackendUnavailableError as error:
        pytest.skip(str(error))


def assert_same(value: Tensor, expected: Tensor, *, bits: bool, what: str) -> None:
    """Equal bits, or equal but for rounding."""
    if bits:
        assert torch.equal(value, expected), what
    else:
        # A sum over all entities rounds at the scale of the largest one beside it.
        largest = expected.detach().abs().max().item()
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=max(1e-5, 2e-6 * largest))


def is_exact(backend_name: str, operation: Operation) -> bool:
    return backend_name not in ROUNDED_BY_BLAS and operation.has_kernel


each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
each_differentiable = pytest.mark.parametrize(
    "operation", [o for o in OPERATIONS if o.has_gradients], ids=lambda o: o.name
)
each_hop = pytest.mark.parametrize("operation", HOPS, ids=lambda o: o.name)
each_spread = pytest.mark.parametrize("operation", SPREADS, ids=lambda o: o.name)
each_with_edges = pytest.mark.parametrize("operation", HOPS + SPREADS, ids=lambda o: o.name)
each_with_kernel = pytest.mark.parametrize("operation", WITH_KERNEL, ids=lambda o: o.name)
each_graph = pytest.mark.parametrize("graph", GRAPHS)
each_width = pytest.mark.parametrize("width", WIDTHS)


# What every backend must do.


@each_operation
@each_graph
def test_errors_stay_within_the_budget_on_every_graph(
    backend: Backend, operation: Operation, graph: str
) -> None:
    edges = edges_of(graph)
    assert_within_budget(operation, backend, several_draws(operation, edges), edges)


@each_operation
@each_width
def test_errors_stay_within_the_budget_at_every_width(
    backend: Backend, operation: Operation, width: int
) -> None:
    edges = edges_of("random")
    assert_within_budget(operation, backend, several_draws(operation, edges, width=width), edges)


@each_operation
def test_errors_stay_within_the_budget_for_one_query(
    backend: Backend, operation: Operation
) -> None:
    edges = edges_of("random")
    assert_within_budget(operation, backend, several_draws(operation, edges, batch=1), edges)


# A kernel takes 48 entities at a time: sizes around one block and two, and one of many blocks.
BLOCK = 48
AROUND_BLOCKS = (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1)
BLOCK_CASES = [
    *((size, 32) for size in AROUND_BLOCKS),
    *((size, width) for size in (BLOCK, 2 * BLOCK + 1) for width in (16, 64)),
    *((2500, width) for width in KERNEL_WIDTHS),
]


def test_the_sizes_around_a_block_are_those_of_the_kernels() -> None:
    stages = pytest.importorskip("knowformer.kernels._cpu_stages")
    assert stages.BLOCK == BLOCK


@pytest.mark.parametrize("backend_name", [n for n in backend_names() if n != "reference"])
@each_with_kernel
@pytest.mark.parametrize(("num_entities", "width"), BLOCK_CASES)
def test_errors_stay_within_the_budget_across_the_edges_of_blocks(
    backend: Backend, operation: Operation, num_entities: int, width: int
) -> None:
    num_facts = num_entities * 12 // 5
    edges = adjacency_of(random_facts(2, num_entities, num_facts), num_entities).edges
    draws = several_draws(operation, edges, width=width, batch=2)
    if num_entities < 1000:
        assert_within_budget(operation, backend, draws, edges)
    else:
        rows = 2 * num_entities
        assert_within_budget(operation, backend, draws[:1], edges, in_a_running_sum=rows)


@each_spread
@each_width
@pytest.mark.parametrize("num_entities", [23, BLOCK + 1, 500])
def test_spreading_gives_the_bits_of_computing_everything(
    backend_name: str, backend: Backend, operation: Operation, width: int, num_entities: int
) -> None:
    """Sparse enough that a head reaches some entities and not others."""
    edges = adjacency_of(random_facts(3, num_entities, num_entities), num_entities).edges
    inputs = draw_inputs(operation, edges, width=width, batch=5)
    with torch.no_grad():
        spread = operation.apply(backend, inputs, edges)
        background = plain_states(backend, inputs, edges, heads=None)[-1]
        plain = plain_states(backend, inputs, edges, heads=heads_of(inputs, edges))[-1]
    exact = backend_name in ROUNDED_BY_BLAS or width in KERNEL_WIDTHS
    assert_same(spread, plain, bits=exact, what="spread")
    changed = (plain != background).any(-1).float().mean().item()
    assert 0.0 < changed < 1.0


@each_operation
def test_inputs_need_not_be_contiguous(
    backend_name: str, backend: Backend, operation: Operation
) -> None:
    edges = edges_of("random")
    inputs, contiguous = {}, draw_inputs(operation, edges)
    for name, tensor in contiguous.items():
        # Every other number of a larger block, with the last two axes swapped where there are two.
        spread = tensor.mT if tensor.ndim > 1 else tensor
        block = torch.stack([spread, torch.full_like(spread, torch.nan)], -1)
        inputs[name] = block[..., 0].mT if tensor.ndim > 1 else block[..., 0]
        assert tensor.numel() == 1 or not inputs[name].is_contiguous()
        assert torch.equal(inputs[name], tensor)
    expected = outputs_and_gradients(operation, backend, contiguous, edges)
    for name, value in outputs_and_gradients(operation, backend, inputs, edges).items():
        assert_same(value, expected[name], bits=is_exact(backend_name, operation), what=name)


@each_operation
@each_width
def test_running_twice_gives_equal_bits(backend: Backend, operation: Operation, width: int) -> None:
    edges = edges_of("random")
    inputs = draw_inputs(operation, edges, width=width)
    first = outputs_and_gradients(operation, backend, inputs, edges)
    second = outputs_and_gradients(operation, backend, inputs, edges)
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


@each_operation
@pytest.mark.parametrize("num_threads", [2, 3])
def test_the_number_of_threads_does_not_change_a_bit(
    backend_name: str, backend: Backend, operation: Operation, num_threads: int
) -> None:
    edges = adjacency_of(random_facts(1, 200, 900), 200).edges
    inputs = draw_inputs(operation, edges, width=32)
    alone = outputs_and_gradients(operation, backend, inputs, edges)
    torch.set_num_threads(num_threads)
    together = outputs_and_gradients(operation, backend, inputs, edges)
    for name, value in alone.items():
        exact = is_exact(backend_name, operation)
        assert_same(together[name], value, bits=exact, what=name)


@each_operation
@each_width
@pytest.mark.parametrize("graph", ["random", "hub with every edge"])
def test_a_querys_result_has_equal_bits_alone_and_among_others(
    backend_name: str, backend: Backend, operation: Operation, width: int, graph: str
) -> None:
    edges = edges_of(graph)
    inputs = draw_inputs(operation, edges, width=width, batch=5)
    together = operation.apply(backend, inputs, edges)
    for first, count in ((0, 1), (3, 1), (4, 1), (1, 3)):
        rows = slice(first, first + count)
        some = {
            name: tensor[rows] if name in operation.queries else tensor
            for name, tensor in inputs.items()
        }
        result = operation.apply(backend, some, edges)
        exact = is_exact(backend_name, operation) and width in KERNEL_WIDTHS
        assert_same(result, together[rows], bits=exact, what=f"queries {rows}")


@each_with_edges
@pytest.mark.parametrize("hidden", ["none", "some", "all of a receiver", "all"])
def test_hidden_edges_equal_a_graph_built_without_them(
    backend: Backend, operation: Operation, hidden: str
) -> None:
    num_entities, facts = GRAPHS["random"]
    adjacency = adjacency_of(facts, num_entities)
    left = {
        "none": facts,
        "some": facts[::3],
        "all of a receiver": [fact for fact in facts if 4 not in (fact[0], fact[2])],
        "all": [],
    }[hidden]
    gone = torch.tensor([f for f in facts if f not in left], dtype=torch.long).reshape(-1, 3)
    masked = adjacency.edges.keep(adjacency.without_facts(gone))
    rebuilt = adjacency_of(left, num_entities).edges
    inputs = draw_inputs(operation, masked)
    for_masked = outputs_and_gradients(operation, backend, inputs, masked)
    for_rebuilt = outputs_and_gradients(operation, backend, inputs, rebuilt)
    assert torch.equal(for_masked["result"], for_rebuilt["result"])
    for name, value in for_rebuilt.items():
        torch.testing.assert_close(for_masked[name], value, rtol=1e-5, atol=1e-5)
    assert_within_budget(operation, backend, [inputs], masked)


@each_operation
def test_inputs_are_left_as_they_were(backend: Backend, operation: Operation) -> None:
    edges = edges_of("random")
    inputs = draw_inputs(operation, edges)
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    outputs_and_gradients(operation, backend, inputs, edges)
    for name, tensor in inputs.items():
        assert torch.equal(tensor, before[name]), name


def test_an_unknown_backend_is_answered_with_those_that_exist() -> None:
    with pytest.raises(BackendUnavailableError, match=r"'referense'.*'reference'"):
        select_backend("referense")


# The reference itself: against the formulas, loop by loop.


@each_differentiable
@pytest.mark.parametrize("graph", ["random", "empty", "self-loops"])
def test_gradients_of_the_reference_are_those_of_finite_differences(
    operation: Operation, graph: str
) -> None:
    num_entities, facts = GRAPHS[graph]
    num_entities = min(num_entities, 5)
    few = [(head % num_entities, relation, tail % num_entities) for head, relation, tail in facts]
    edges = adjacency_of(few[:8], num_entities).edges
    inputs = in_float64(draw_inputs(operation, edges, width=4, batch=2))
    names = list(inputs)

    def apply(*tensors: Tensor) -> Tensor:
        return operation.apply(
            select_backend("reference"), dict(zip(names, tensors, strict=True)), edges
        )

    leaves = [tensor.requires_grad_() for tensor in inputs.values()]
    assert torch.autograd.gradcheck(apply, leaves)


def directed(facts: Facts) -> set[tuple[int, int, int]]:
    backwards = {(tail, relation + NUM_RELATIONS, head) for head, relation, tail in facts}
    return set(facts) | backwards


def naive_linear(weight: list[list[float]], bias: list[float], x: list[float]) -> list[float]:
    return [
        b + sum(w * value for w, value in zip(row, x, strict=True))
        for row, b in zip(weight, bias, strict=True)
    ]


def naive_hop(inputs: Inputs, facts: Facts, batch: int, receiver: int) -> list[float]:
    """Design section 3: alpha z_u + sum over r(v, u) of z_v * relation_vector_r, then update."""
    states = inputs["states"][batch].tolist()
    vectors = inputs["relation_vectors"][batch].tolist()
    own = states[receiver]
    update = [alpha * z for alpha, z in zip(inputs["self_weight"].tolist(), own, strict=True)]
    for sender, relation, tail in directed(facts):
        if tail == receiver:
            for column in range(len(own)):
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
        for z, g, x, b in zip(own, gain, update, shift, strict=True)
    ]


@each_hop
@pytest.mark.parametrize("graph", ["random", "empty", "self-loops", "duplicate facts"])
def test_the_references_hop_is_the_formula(operation: Operation, graph: str) -> None:
    num_entities, facts = GRAPHS[graph]
    edges = edges_of(graph)
    inputs = in_float64(draw_inputs(operation, edges, width=4, batch=2))
    result = operation.apply(select_backend("reference"), inputs, edges)
    expected = [[naive_hop(inputs, facts, b, u) for u in range(num_entities)] for b in range(2)]
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.double))


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


ATTENTIONS: list[tuple[Callable[..., Tensor], Callable[[list[float], list[float]], float]]] = [
    (linear_attention, lambda q, k: 1 + dot(q, k)),
    (feature_attention, dot),
    (dense_attention, lambda q, k: math.exp(dot(q, k))),
]


def naive_attention(
    similarity: Callable[[list[float], list[float]], float],
    q: list[list[float]],
    k: list[list[float]],
    v: list[list[float]],
) -> list[list[float]]:
    """out_u = [V v_u + sum_w kappa(q_u, k_w) v_w] / [V + sum_w kappa(q_u, k_w)]."""
    rows = []
    for query, own in zip(q, v, strict=True):
        kappa = [similarity(query, key) for key in k]
        columns = [
            len(v) * own[column] + sum(s * row[column] for s, row in zip(kappa, v, strict=True))
            for column in range(len(own))
        ]
        rows.append([column / (len(v) + sum(kappa)) for column in columns])
    return rows


@pytest.mark.parametrize("num_entities", [1, 2, 7])
@pytest.mark.parametrize(("attention", "similarity"), ATTENTIONS)
def test_the_references_attention_is_the_formula(
    attention: Callable[..., Tensor],
    similarity: Callable[[list[float], list[float]], float],
    num_entities: int,
) -> None:
    draw = torch.Generator().manual_seed(0)
    q, k, v = torch.rand(3, 2, 2, num_entities, 3, generator=draw, dtype=torch.double)
    result = attention(q, k, v)
    for batch, head in product(range(2), range(2)):
        parts = (part[batch, head].tolist() for part in (q, k, v))
        expected = torch.tensor(naive_attention(similarity, *parts), dtype=torch.double)
        torch.testing.assert_close(result[batch, head], expected)


def test_the_references_layer_end_is_the_formula() -> None:
    """A = LN(x + out), X = LN(A + FFN(A)) (eq. 11), with q and k of unit length per head."""
    edges = adjacency_of([], 6).edges
    inputs = in_float64(draw_attend(2, 6, 8, torch.Generator().manual_seed(0)))
    result = apply_attend(num_heads=2)(select_backend("reference"), inputs, edges)

    def mapped(name: str, x: Tensor) -> Tensor:
        return x @ inputs[f"{name}_w"].T + inputs[f"{name}_b"]

    def normed(name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred.square().mean(-1, keepdim=True) + NORM_EPSILON).sqrt()
        return centred / spread * inputs[f"{name}_w"] + inputs[f"{name}_b"]

    gathered = torch.empty_like(inputs["states"])
    for head in (slice(0, 4), slice(4, 8)):
        q = mapped("query", inputs["query_key_states"])[..., head]
        k = mapped("key", inputs["query_key_states"])[..., head]
        unit_q, unit_k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
        gathered[..., head] = linear_attention(
            unit_q[:, None], unit_k[:, None], inputs["value_states"][:, None, :, head]
        )[:, 0]
    a = normed("attention_norm", inputs["states"] + gathered)
    expected = normed("output_norm", a + mapped("contract", mapped("expand", a).relu()))
    torch.testing.assert_close(result, expected)
