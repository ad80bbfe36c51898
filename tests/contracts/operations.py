"""The operations of a backend: how to draw what each takes, and how to call it.

Named tensors go in and one row per query and entity comes out. What belongs to rows is drawn as
[queries, entities, width], or handed over flat where queries see graphs of different sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from knowformer.kernels.interface import (
    AttendWeights,
    Backend,
    Dropout,
    HopWeights,
    InputWeights,
    QueryView,
    ScoreWeights,
    Similarity,
    StreamWeights,
)

Inputs = dict[str, Tensor]
Draw = Callable[[int, int, int, torch.Generator], Inputs]  # queries, entities, width

NUM_RELATIONS = 3
NUM_HOPS = 2  # of a stream
OF_ROWS = ("states", "query_key_states", "value_states")


@dataclass(frozen=True)
class Operation:
    """One kernel: how to draw its inputs and how to call it."""

    name: str
    draw: Draw
    apply: Callable[[Backend, Inputs, QueryView], Tensor]
    queries: tuple[str, ...] = ()  # inputs with something for each query; the others are weights
    uses_edges: bool = False
    has_kernel: bool = True  # False: every backend leaves it to the reference
    has_gradients: bool = True  # False: it is for queries that all see the whole graph


def flat(states: Tensor) -> Tensor:
    return states.reshape(-1, states.shape[-1])


def normal_tensors(generator: torch.Generator, **shapes: tuple[int, ...]) -> Inputs:
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


# ---- hops and streams ----------------------------------------------------------------------------


def draw_hop(num_linear: int, *, has_norm: bool) -> Draw:
    def draw(queries: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
        inputs = normal_tensors(
            generator,
            states=(queries, entities, width),
            relation_vectors=(queries, 2 * NUM_RELATIONS, width),
            self_weight=(width,),
        )
        for number in range(num_linear):
            linear = {f"weight{number}": (width, width), f"bias{number}": (width,)}
            inputs |= normal_tensors(generator, **linear)
            inputs[f"weight{number}"] /= width**0.5
        if has_norm:
            inputs |= normal_tensors(generator, gain=(width,), shift=(width,))
            inputs["gain"] = 1 + 0.1 * inputs["gain"]
        return inputs

    return draw


def pack_hop(inputs: Inputs) -> HopWeights:
    numbers = range(sum(name.startswith("weight") for name in inputs))
    return HopWeights.pack(
        inputs["self_weight"],
        [(inputs[f"weight{number}"], inputs[f"bias{number}"]) for number in numbers],
        (inputs["gain"], inputs["shift"]) if "gain" in inputs else None,
    )


def apply_hop(backend: Backend, inputs: Inputs, view: QueryView) -> Tensor:
    vectors = inputs["relation_vectors"]
    return backend.hop(flat(inputs["states"]), vectors, view, pack_hop(inputs))


def draw_input(*, with_states: bool, per_entity: bool, with_head: bool) -> Draw:
    def draw(queries: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
        square, row = (width, width), (width,)
        extra = (entities if per_entity else 1, width)
        inputs = normal_tensors(generator, extra=extra, first=square, second=square, bias=row)
        inputs["first"] /= width**0.5
        inputs["second"] /= width**0.5
        if with_states:
            inputs |= normal_tensors(generator, states=(queries, entities, width))
        if with_head:
            inputs |= normal_tensors(generator, indicator=row)
        return inputs

    return draw


def pack_input(inputs: Inputs) -> InputWeights:
    second = (inputs["second"], inputs["bias"])
    return InputWeights.pack(inputs["extra"], inputs["first"], second, inputs.get("indicator"))


def states_of(inputs: Inputs) -> Tensor | None:
    return flat(inputs["states"]) if "states" in inputs else None


def apply_input(backend: Backend, inputs: Inputs, view: QueryView) -> Tensor:
    return backend.stream_input(states_of(inputs), pack_input(inputs), view)


def draw_stream(draw_start: Draw, draw_one_hop: Draw, *, shares_vectors: bool) -> Draw:
    """Relation vectors are the same for all hops, or each hop has its own."""

    def draw(queries: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
        inputs = draw_start(queries, entities, width, generator)
        for number in range(NUM_HOPS):
            hop = draw_one_hop(queries, entities, width, generator)
            del hop["states"]
            vectors = hop.pop("relation_vectors")
            if not shares_vectors:
                inputs[f"relation_vectors{number}"] = vectors
            elif number == 0:
                inputs["relation_vectors"] = vectors
            inputs |= {f"{number} {name}": tensor for name, tensor in hop.items()}
        return inputs

    return draw


def draw_near_heads(draw_one_hop: Draw) -> Draw:
    """All queries have the same relation, hence the same relation vectors."""
    draw_start = draw_input(with_states=False, per_entity=False, with_head=True)
    draw_one = draw_stream(draw_start, draw_one_hop, shares_vectors=False)

    def draw(queries: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
        del queries
        return draw_one(1, entities, width, generator)

    return draw


def stream_of(inputs: Inputs) -> tuple[StreamWeights, list[Tensor]]:
    """Returns the stream's weights and the relation vectors of each hop."""
    hops: list[HopWeights] = []
    for number in range(NUM_HOPS):
        prefix = f"{number} "
        of_hop = {
            name.removeprefix(prefix): tensor
            for name, tensor in inputs.items()
            if name.startswith(prefix)
        }
        hops.append(pack_hop(of_hop))
    shared = inputs.get("relation_vectors")
    vectors = [
        inputs[f"relation_vectors{number}"] if shared is None else shared
        for number in range(NUM_HOPS)
    ]
    return StreamWeights(pack_input(inputs), tuple(hops)), vectors


def apply_stream(backend: Backend, inputs: Inputs, view: QueryView) -> Tensor:
    weights, vectors = stream_of(inputs)
    return backend.stream(states_of(inputs), weights, vectors, view)


def apply_stream_step_by_step(backend: Backend, inputs: Inputs, view: QueryView) -> Tensor:
    """The stream as its input and its hops, each an operation of its own."""
    weights, vectors = stream_of(inputs)
    states = backend.stream_input(states_of(inputs), weights.start, view)
    for hop, each in zip(weights.hops, vectors, strict=True):
        states = backend.hop(states, each.expand(len(view), -1, -1), view, hop)
    return states


def apply_near_heads(backend: Backend, inputs: Inputs, view: QueryView) -> Tensor:
    weights, vectors = stream_of(inputs)
    background = backend.stream_background(weights, vectors, view.edges)
    return backend.stream_near_heads(background, weights, vectors, view)


# ---- attention and the end of a layer ------------------------------------------------------------


LINEAR_MAPS = ("query", "key", "expand", "contract")
FINISH_MAPS = ("expand", "contract")
NORMS = ("attention_norm", "output_norm")


def draw_attend(queries: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
    inputs = normal_tensors(generator, **dict.fromkeys(OF_ROWS, (queries, entities, width)))
    for name in LINEAR_MAPS:
        inputs |= normal_tensors(generator, **{f"{name}_w": (width, width), f"{name}_b": (width,)})
        inputs[f"{name}_w"] /= width**0.5
    for name in NORMS:
        inputs |= normal_tensors(generator, **{f"{name}_w": (width,), f"{name}_b": (width,)})
        inputs[f"{name}_w"] = 1 + 0.1 * inputs[f"{name}_w"]
    return inputs


def pairs_of(inputs: Inputs, *names: str) -> dict[str, tuple[Tensor, Tensor]]:
    return {name: (inputs[f"{name}_w"], inputs[f"{name}_b"]) for name in names}


def pack_attend(inputs: Inputs, similarity: Similarity, num_heads: int) -> AttendWeights:
    pairs = pairs_of(inputs, *LINEAR_MAPS, *NORMS)
    shape = (num_heads, inputs["states"].shape[-1] // num_heads, 7)
    return AttendWeights.pack(
        (pairs["query"], pairs["key"]),
        pairs["attention_norm"],
        (pairs["expand"], pairs["contract"]),
        pairs["output_norm"],
        similarity,
        torch.randn(shape, generator=torch.Generator().manual_seed(0)),
    )


def draw_dropout(states: Tensor, threshold: int) -> Dropout | None:
    """Bytes follow each query's own numbers, so that they stay the same among other mates."""
    if not threshold:
        return None
    numbers = (states.detach().float().abs() * 1e3).long().remainder(256)
    return Dropout(numbers.to(torch.uint8).contiguous(), threshold)


def apply_attend(
    *, num_heads: int, similarity: Similarity = "linear", threshold: int = 0
) -> Callable[..., Tensor]:
    def apply(
        backend: Backend, inputs: Inputs, view: QueryView, attended: Tensor | None = None
    ) -> Tensor:
        states, query_key_states, value_states = (flat(inputs[name]) for name in OF_ROWS)
        heads = num_heads if states.shape[-1] % num_heads == 0 else 1
        return backend.attend(
            states,
            query_key_states,
            value_states,
            pack_attend(inputs, similarity, heads),
            view,
            num_heads=heads,
            dropout=draw_dropout(states, threshold),
            attended=attended,
        )

    return apply


def draw_finish(queries: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
    inputs = draw_attend(queries, entities, width, generator)
    left_out = ("query_key_states", "query_w", "query_b", "key_w", "key_b")
    return {name: tensor for name, tensor in inputs.items() if name not in left_out}


def apply_finish(threshold: int) -> Callable[..., Tensor]:
    def apply(backend: Backend, inputs: Inputs, view: QueryView) -> Tensor:
        states, gathered = flat(inputs["states"]), flat(inputs["value_states"])
        assert len(states) == view.num_rows
        pairs = pairs_of(inputs, *FINISH_MAPS, *NORMS)
        feed_forward = (pairs["expand"], pairs["contract"])
        weights = AttendWeights.pack(
            None, pairs["attention_norm"], feed_forward, pairs["output_norm"]
        )
        dropout = draw_dropout(states, threshold)
        return backend.finish_layer(states, gathered, weights, dropout=dropout)

    return apply


def draw_score(queries: int, entities: int, width: int, generator: torch.Generator) -> Inputs:
    inputs = normal_tensors(
        generator,
        states=(queries, entities, width),
        hidden_w=(width, width),
        hidden_b=(width,),
        last_w=(1, width),
        last_b=(1,),
    )
    inputs["hidden_w"] /= width**0.5
    return inputs


def apply_score(backend: Backend, inputs: Inputs, view: QueryView) -> Tensor:
    states = flat(inputs["states"])
    assert len(states) == view.num_rows
    return backend.score(states, ScoreWeights.pack(**pairs_of(inputs, "hidden", "last")))


# ---- all of them ---------------------------------------------------------------------------------


def hop_operation(name: str, draw: Draw) -> Operation:
    queries = ("states", "relation_vectors")
    return Operation(f"hop, {name}", draw, apply_hop, queries, uses_edges=True)


def input_operation(name: str, draw: Draw) -> Operation:
    return Operation(f"stream_input, {name}", draw, apply_input, ("states",))


def stream_operation(name: str, start: Draw, hop: Draw, *, shares_vectors: bool) -> Operation:
    draw = draw_stream(start, hop, shares_vectors=shares_vectors)
    vectors = [f"relation_vectors{number}" for number in range(NUM_HOPS)]
    queries = ("states", *(["relation_vectors"] if shares_vectors else vectors))
    return Operation(f"stream, {name}", draw, apply_stream, queries, uses_edges=True)


def near_heads_operation(name: str, hop: Draw) -> Operation:
    return Operation(
        f"stream_near_heads, {name}", draw_near_heads(hop), apply_near_heads,
        uses_edges=True, has_gradients=False,
    )  # fmt: skip


def attend_operation(name: str, **settings: Any) -> Operation:
    has_kernel = settings.get("similarity", "linear") == "linear"
    apply = apply_attend(**settings)
    return Operation(f"attend, {name}", draw_attend, apply, OF_ROWS, has_kernel=has_kernel)


def finish_operation(name: str, threshold: int) -> Operation:
    queries = ("states", "value_states")
    apply = apply_finish(threshold)
    return Operation(f"finish_layer, {name}", draw_finish, apply, queries, has_kernel=False)


RELEASED, PAPER = draw_hop(2, has_norm=True), draw_hop(3, has_norm=False)
QUERY_START = draw_input(with_states=True, per_entity=True, with_head=False)
VALUE_START = draw_input(with_states=True, per_entity=False, with_head=True)
FIRST_QUERY_START = draw_input(with_states=False, per_entity=True, with_head=False)
FIRST_VALUE_START = draw_input(with_states=False, per_entity=False, with_head=True)

HOPS = [hop_operation("released form", RELEASED), hop_operation("paper's form", PAPER)]
INPUTS = [
    input_operation("query stream", QUERY_START),
    input_operation("value stream", VALUE_START),
    input_operation("first query stream", FIRST_QUERY_START),
    input_operation("first value stream", FIRST_VALUE_START),
]
STREAMS = [
    stream_operation("query stream", QUERY_START, RELEASED, shares_vectors=True),
    stream_operation("value stream", VALUE_START, RELEASED, shares_vectors=False),
    stream_operation("first query stream", FIRST_QUERY_START, PAPER, shares_vectors=True),
    stream_operation("first value stream", FIRST_VALUE_START, PAPER, shares_vectors=False),
]
NEAR_HEADS = [
    near_heads_operation("released form", RELEASED),
    near_heads_operation("paper's form", PAPER),
]
ATTENDS = [
    attend_operation("four heads", num_heads=4),
    attend_operation("one head", num_heads=1),
    attend_operation("dropout", num_heads=4, threshold=80),
    attend_operation("exponential", num_heads=2, similarity="exponential"),
    attend_operation("random features", num_heads=2, similarity="random_features"),
]
OPERATIONS = [
    *HOPS,
    *INPUTS,
    *STREAMS,
    *NEAR_HEADS,
    *ATTENDS,
    finish_operation("plain", threshold=0),
    finish_operation("dropout", threshold=80),
    Operation("score", draw_score, apply_score, ("states",)),
]
DIFFERENTIABLE = [operation for operation in OPERATIONS if operation.has_gradients]
WITH_KERNEL = [operation for operation in OPERATIONS if operation.has_kernel]
# A stream must agree with its input and its hops to the last bit, so their errors are its errors.
# Its own say little: through several ReLUs, a number that rounds to the other side of zero once in
# many thousands changes a gradient by far more than rounding does.
SINGLE_STEPS = [operation for operation in OPERATIONS if operation not in STREAMS]
