"""Graphs to run operations on, and how their results are compared."""

import pytest
import torch
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.kernels.interface import Backend, Edges, QueryView, backend_names, select_backend
from tests.contracts.operations import NUM_RELATIONS, Inputs, Operation

Facts = list[tuple[int, int, int]]

# BLAS picks a routine by the shape of the whole batch, and torch splits some sums by thread: the
# last bits of the reference may follow either, on some CPUs. A kernel of our own has no excuse.
ROUNDED_BY_BLAS = ("reference",)
KERNEL_WIDTHS = (16, 32, 64)  # a backend may hand other widths to the reference
WIDTHS = (5, 12, *KERNEL_WIDTHS)

# For what would compare the reference with itself.
each_compiled = pytest.mark.parametrize(
    "backend_name", [name for name in backend_names() if name != "reference"]
)


# ---- graphs: the shapes that go wrong first ------------------------------------------------------


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


def adjacency_of(facts: Facts, num_entities: int) -> Adjacency:
    numbered = torch.tensor(facts, dtype=torch.long).reshape(-1, 3)
    return Adjacency(numbered, num_entities=num_entities, num_relations=NUM_RELATIONS)


def edges_of(graph: str) -> Edges:
    num_entities, facts = GRAPHS[graph]
    return adjacency_of(facts, num_entities).edges


def random_edges(num_entities: int, num_facts: int, *, seed: int = 2) -> Edges:
    return adjacency_of(random_facts(seed, num_entities, num_facts), num_entities).edges


def view_of(edges: Edges, num_queries: int = 3) -> QueryView:
    """Queries that see the whole graph, with heads all over it."""
    return QueryView.whole(edges, (7 * torch.arange(num_queries) + 3) % edges.num_entities)


# ---- inputs and results --------------------------------------------------------------------------


def draw_inputs(operation: Operation, view: QueryView, *, width: int = 16, seed: int = 0) -> Inputs:
    """Draws inputs for queries that see the whole graph."""
    assert view.is_whole
    generator = torch.Generator().manual_seed(seed)
    return operation.draw(len(view), view.edges.num_entities, width, generator)


def several_draws(operation: Operation, view: QueryView, *, width: int = 16) -> list[Inputs]:
    return [draw_inputs(operation, view, width=width, seed=seed) for seed in range(3)]


def outputs_and_gradients(
    operation: Operation,
    backend: Backend,
    inputs: Inputs,
    view: QueryView,
    downstream: Tensor | None = None,
) -> Inputs:
    """Returns the result and the gradient of every input, for a fixed gradient of the result."""
    if not operation.has_gradients:
        with torch.no_grad():
            return {"result": operation.apply(backend, inputs, view)}
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    result = operation.apply(backend, leaves, view)
    if downstream is None:
        downstream = draw_downstream(result)
    gradients = torch.autograd.grad(
        result, list(leaves.values()), downstream.to(result.dtype), allow_unused=True
    )
    results = {"result": result.detach()}
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        results[f"gradient of {name}"] = torch.zeros_like(leaf) if gradient is None else gradient
    return results


def draw_downstream(result: Tensor) -> Tensor:
    return torch.randn(result.shape, generator=torch.Generator().manual_seed(99))


def in_float64(inputs: Inputs) -> Inputs:
    return {name: tensor.double() for name, tensor in inputs.items()}


# ---- comparisons ---------------------------------------------------------------------------------


def max_error(value: Tensor, truth: Tensor) -> float:
    return (value.double() - truth).abs().max().item() if truth.numel() else 0.0


def assert_within_budget(
    operation: Operation,
    backend: Backend,
    draws: list[Inputs],
    view: QueryView,
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
        truth = outputs_and_gradients(operation, reference, in_float64(inputs), view)
        plain = outputs_and_gradients(operation, reference, inputs, view)
        fast = outputs_and_gradients(operation, backend, inputs, view)
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
