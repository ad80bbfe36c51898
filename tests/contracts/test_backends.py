"""What every backend promises, of every operation.

The reference in float64 is the truth, and is itself compared with plain Python loops. A backend in
float32 may err at most twice as much as the reference in float32 does, gradients included.
"""

from dataclasses import replace

import pytest
import torch

from knowformer.errors import BackendUnavailableError
from knowformer.kernels.interface import (
    NO_HEAD,
    Backend,
    QueryView,
    select_backend,
)
from tests.contracts.accuracy import (
    GRAPHS,
    KERNEL_WIDTHS,
    ROUNDED_BY_BLAS,
    WIDTHS,
    adjacency_of,
    assert_same,
    assert_within_budget,
    draw_inputs,
    each_compiled,
    edges_of,
    is_exact,
    outputs_and_gradients,
    random_edges,
    several_draws,
    view_of,
)
from tests.contracts.operations import (
    HOPS,
    NEAR_HEADS,
    OF_ROWS,
    OPERATIONS,
    SINGLE_STEPS,
    STREAMS,
    WITH_KERNEL,
    Operation,
    apply_stream_step_by_step,
    flat,
)


def name_of(operation: Operation) -> str:
    return operation.name


each_step = pytest.mark.parametrize("operation", SINGLE_STEPS, ids=name_of)
each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=name_of)
each_stream = pytest.mark.parametrize("operation", STREAMS, ids=name_of)
each_near_heads = pytest.mark.parametrize("operation", NEAR_HEADS, ids=name_of)
each_with_edges = pytest.mark.parametrize("operation", HOPS + STREAMS + NEAR_HEADS, ids=name_of)
each_with_kernel = pytest.mark.parametrize("operation", WITH_KERNEL, ids=name_of)
each_compiled_step = pytest.mark.parametrize(
    "operation", [step for step in SINGLE_STEPS if step.has_kernel], ids=name_of
)
each_graph = pytest.mark.parametrize("graph", GRAPHS)
each_width = pytest.mark.parametrize("width", WIDTHS)


# ---- errors --------------------------------------------------------------------------------------


@each_compiled
@each_step
@each_graph
def test_errors_stay_within_the_budget_on_every_graph(
    backend: Backend, operation: Operation, graph: str
) -> None:
    view = view_of(edges_of(graph))
    assert_within_budget(operation, backend, several_draws(operation, view), view)


@each_compiled
@each_step
@each_width
def test_errors_stay_within_the_budget_at_every_width(
    backend: Backend, operation: Operation, width: int
) -> None:
    view = view_of(edges_of("random"))
    assert_within_budget(operation, backend, several_draws(operation, view, width=width), view)


@each_compiled
@each_step
def test_errors_stay_within_the_budget_for_one_query(
    backend: Backend, operation: Operation
) -> None:
    view = view_of(edges_of("random"), 1)
    assert_within_budget(operation, backend, several_draws(operation, view), view)


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


@each_compiled
@each_compiled_step
@pytest.mark.parametrize(("num_entities", "width"), BLOCK_CASES)
def test_errors_stay_within_the_budget_across_the_edges_of_blocks(
    backend: Backend, operation: Operation, num_entities: int, width: int
) -> None:
    view = view_of(random_edges(num_entities, num_entities * 12 // 5), 2)
    draws = several_draws(operation, view, width=width)
    if num_entities < 1000:
        assert_within_budget(operation, backend, draws, view)
    else:
        rows = 2 * num_entities
        assert_within_budget(operation, backend, draws[:1], view, in_a_running_sum=rows)


@each_compiled
@each_with_kernel
def test_what_is_not_a_number_comes_out_wherever_it_does_of_the_reference(
    backend: Backend, operation: Operation
) -> None:
    """ReLU lets it through: were it taken for a negative number, nobody would notice it."""
    view = view_of(edges_of("random"))
    inputs, reference = draw_inputs(operation, view), select_backend("reference")
    is_noticed: dict[str, bool] = {}
    for name, tensor in inputs.items():
        poisoned = inputs | {name: torch.full_like(tensor, torch.nan)}
        result, expected = (operation.apply(each, poisoned, view) for each in (backend, reference))
        is_noticed[name] = bool(result.isnan().any())
        if name == "indicator":  # the reference multiplies it by zero where there is no head
            expected = expected.where(result.isnan(), result)
            assert result[view.offsets[:-1] + view.heads].isnan().all()
        assert torch.equal(result.isnan(), expected.isnan()), name
    # Without states nothing goes through the first map.
    assert {name for name in inputs if not is_noticed[name]} <= {"first"}
    assert is_noticed.get("first", True) or "states" not in inputs


@each_compiled
@each_with_kernel
def test_one_call_leaves_nothing_behind_for_the_next(
    backend: Backend, operation: Operation
) -> None:
    """Kernels keep their scratch from call to call; what is in it must not matter."""
    large, small = view_of(random_edges(2 * BLOCK + 1, 200)), view_of(edges_of("random"))
    inputs, poison = draw_inputs(operation, small), draw_inputs(operation, large)
    poison = {name: torch.full_like(tensor, torch.nan) for name, tensor in poison.items()}
    before = outputs_and_gradients(operation, backend, inputs, small)
    outputs_and_gradients(operation, backend, poison, large)
    for name, value in outputs_and_gradients(operation, backend, inputs, small).items():
        assert torch.equal(value, before[name]), name


# ---- bits ----------------------------------------------------------------------------------------


@each_compiled
@each_stream
@pytest.mark.parametrize("width", KERNEL_WIDTHS)
@pytest.mark.parametrize("graph", ["random", "empty", "hub with every edge"])
def test_a_stream_has_the_bits_of_its_input_and_its_hops(
    backend_name: str, backend: Backend, operation: Operation, graph: str, width: int
) -> None:
    view = view_of(edges_of(graph))
    step_by_step = replace(operation, apply=apply_stream_step_by_step)
    inputs = draw_inputs(operation, view, width=width)
    expected = outputs_and_gradients(step_by_step, backend, inputs, view)
    for name, value in outputs_and_gradients(operation, backend, inputs, view).items():
        assert_same(value, expected[name], bits=is_exact(backend_name, operation), what=name)


@each_near_heads
@each_width
@pytest.mark.parametrize("num_entities", [23, BLOCK + 1, 500])
def test_a_stream_near_its_heads_has_the_bits_of_computing_everything(
    backend_name: str, backend: Backend, operation: Operation, width: int, num_entities: int
) -> None:
    """Sparse enough that a head reaches some entities and not others."""
    view = view_of(random_edges(num_entities, num_entities, seed=3), 5)
    headless = QueryView.whole(view.edges, torch.full((5,), NO_HEAD))
    inputs = draw_inputs(operation, view, width=width)
    with torch.no_grad():
        result = operation.apply(backend, inputs, view)
        plain = apply_stream_step_by_step(backend, inputs, view)
        background = apply_stream_step_by_step(backend, inputs, headless)
    exact = backend_name in ROUNDED_BY_BLAS or width in KERNEL_WIDTHS
    assert_same(result, plain, bits=exact, what="stream near its heads")
    changed = (plain != background).any(-1).float().mean().item()
    assert 0.0 < changed < 1.0


@each_operation
def test_inputs_need_not_be_contiguous(
    backend_name: str, backend: Backend, operation: Operation
) -> None:
    view = view_of(edges_of("random"))
    drawn = draw_inputs(operation, view)
    contiguous = {name: flat(t) if name in OF_ROWS else t for name, t in drawn.items()}
    inputs = {}
    for name, tensor in contiguous.items():
        # Every other number of a larger block, with the last two axes swapped where there are two.
        swapped = tensor.mT if tensor.ndim > 1 else tensor
        block = torch.stack([swapped, torch.full_like(swapped, torch.nan)], -1)
        inputs[name] = block[..., 0].mT if tensor.ndim > 1 else block[..., 0]
        assert tensor.numel() == 1 or not inputs[name].is_contiguous()
        assert torch.equal(inputs[name], tensor)
    strided = QueryView.whole(view.edges, torch.stack([view.heads, view.heads + 1], 1)[:, 0])
    assert not strided.heads.is_contiguous()
    expected = outputs_and_gradients(operation, backend, contiguous, view)
    for name, value in outputs_and_gradients(operation, backend, inputs, strided).items():
        assert_same(value, expected[name], bits=is_exact(backend_name, operation), what=name)


@each_operation
@each_width
def test_running_twice_gives_equal_bits(backend: Backend, operation: Operation, width: int) -> None:
    view = view_of(edges_of("random"))
    inputs = draw_inputs(operation, view, width=width)
    first = outputs_and_gradients(operation, backend, inputs, view)
    second = outputs_and_gradients(operation, backend, inputs, view)
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


@each_operation
@pytest.mark.parametrize("num_threads", [2, 3])
def test_the_number_of_torchs_threads_does_not_change_a_bit(
    backend_name: str, backend: Backend, operation: Operation, num_threads: int
) -> None:
    view = view_of(random_edges(200, 900, seed=1))
    inputs = draw_inputs(operation, view, width=32)
    alone = outputs_and_gradients(operation, backend, inputs, view)
    torch.set_num_threads(num_threads)
    together = outputs_and_gradients(operation, backend, inputs, view)
    for name, value in alone.items():
        assert_same(together[name], value, bits=is_exact(backend_name, operation), what=name)


@each_operation
@each_width
@pytest.mark.parametrize("graph", ["random", "hub with every edge"])
def test_a_querys_result_has_equal_bits_alone_and_among_others(
    backend_name: str, backend: Backend, operation: Operation, width: int, graph: str
) -> None:
    view = view_of(edges_of(graph), 5)
    inputs = draw_inputs(operation, view, width=width)
    together = operation.apply(backend, inputs, view)
    exact = is_exact(backend_name, operation) and width in KERNEL_WIDTHS
    for first, last in ((0, 1), (3, 4), (4, 5), (1, 4)):
        some = {
            name: tensor[first:last] if name in operation.queries else tensor
            for name, tensor in inputs.items()
        }
        alone = QueryView.whole(view.edges, view.heads[first:last])
        result = operation.apply(backend, some, alone)
        rows = slice(int(view.offsets[first]), int(view.offsets[last]))
        assert_same(result, together[rows], bits=exact, what=f"queries {first} to {last}")


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
    masked = view_of(adjacency.edges.keep(adjacency.without_facts(gone)))
    rebuilt = view_of(adjacency_of(left, num_entities).edges)
    inputs = draw_inputs(operation, masked)
    for_masked = outputs_and_gradients(operation, backend, inputs, masked)
    for_rebuilt = outputs_and_gradients(operation, backend, inputs, rebuilt)
    assert torch.equal(for_masked["result"], for_rebuilt["result"])
    for name, value in for_rebuilt.items():
        torch.testing.assert_close(for_masked[name], value, rtol=1e-5, atol=1e-5)


@each_operation
def test_inputs_are_left_as_they_were(backend: Backend, operation: Operation) -> None:
    view = view_of(edges_of("random"))
    inputs = draw_inputs(operation, view)
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    outputs_and_gradients(operation, backend, inputs, view)
    for name, tensor in inputs.items():
        assert torch.equal(tensor, before[name]), name


def test_an_unknown_backend_is_answered_with_those_that_exist() -> None:
    with pytest.raises(BackendUnavailableError, match=r"'referense'.*'reference'"):
        select_backend("referense")
