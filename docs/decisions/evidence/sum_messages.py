"""Times one sum of messages, forward and backward: by distinct message, and edge by edge.

Usage: ``python docs/decisions/evidence/sum_messages.py`` (decision 0007)
"""

import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from knowformer import load_dataset
from knowformer.graph.adjacency import Adjacency
from knowformer.kernels._reference import sum_messages

BATCH_SIZE, WIDTH, REPEATS = 32, 32, 11


def sum_edge_by_edge(states: Tensor, relation_vectors: Tensor, adjacency: Adjacency) -> Tensor:
    """What most code in the field does: a message per edge, added to its receiver."""
    messages = states[:, adjacency.sender] * relation_vectors[:, adjacency.relation]
    return torch.zeros_like(states).index_add_(1, adjacency.receiver, messages)


def measure(operation: Callable[[], Tensor], inputs: tuple[Tensor, Tensor]) -> float:
    """Returns the median time of forward and backward in milliseconds."""
    seconds: list[float] = []
    for _ in range(REPEATS):
        for tensor in inputs:
            tensor.grad = None
        started = time.perf_counter()
        operation().sum().backward()
        seconds.append(time.perf_counter() - started)
    return 1000 * median(seconds[1:])


def main() -> None:
    """Compares the two on the embedded UMLS graph with one thread."""
    torch.set_num_threads(1)
    adjacency = load_dataset("umls-pykeen").train.graph.adjacency
    edges = adjacency.edges
    drawn = torch.Generator().manual_seed(0)
    states = torch.randn(BATCH_SIZE, edges.num_entities, WIDTH, generator=drawn)
    relation_vectors = torch.randn(BATCH_SIZE, edges.num_relations, WIDTH, generator=drawn)
    inputs = (states.requires_grad_(), relation_vectors.requires_grad_())
    by_message = sum_messages(*inputs, edges)
    by_edge = sum_edge_by_edge(*inputs, adjacency)
    alone = sum_messages(states[:1], relation_vectors[:1], edges)
    lines = [
        f"edges {adjacency.num_edges}, distinct messages {len(edges.message_sender)}",
        f"by message    {measure(lambda: sum_messages(*inputs, edges), inputs):8.1f} ms",
        f"edge by edge  {measure(lambda: sum_edge_by_edge(*inputs, adjacency), inputs):8.1f} ms",
        f"largest difference {(by_message - by_edge).abs().max().item():.1e}, "
        f"of values up to {by_edge.abs().max().item():.1f}",
        f"a query alone gives the same bits: {torch.equal(alone[0], by_message[0])}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
