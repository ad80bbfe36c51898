"""Compiles what tests call: ``python -m tests.compile_ahead``.

``./check`` does so before the tests: two of their workers would compile the same code at once.
"""

from collections.abc import Callable, Iterable
from typing import Any

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels._arguments import TABLE, arguments_of
from knowformer.kernels._cpu_compile import WIDTHS, compiled_kernel
from knowformer.views.cpu import CompiledExtraction
from knowformer.views.settings import Rules, ViewSettings
from tests.unit.views.asking import ask, queries, ranks_of

NUM_HEADS = (4, 1)  # of the operations with attention


def compile_kernels() -> None:
    for name in TABLE:
        has_heads = any(argument.kind == "heads" for argument in arguments_of(name))
        for width in WIDTHS:
            for num_heads in NUM_HEADS if has_heads else NUM_HEADS[:1]:
                compiled_kernel(name, width, width // num_heads)


def compile_views() -> None:
    graph = KnowledgeGraph.from_triples([("ann", "mother_of", "bob"), ("bob", "friend_of", "cid")])
    rules = Rules.of(ViewSettings(size=1))
    extraction = CompiledExtraction(graph.adjacency, ranks_of(graph), rules, map_in_order)
    extraction.extract(queries(graph, ask(graph, 0, None)), outside=True)


def map_in_order(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return list(map(function, items))


if __name__ == "__main__":
    compile_kernels()
    compile_views()
