"""Views by compiled code: threads extract them, then lay them side by side."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numba import njit, typeof
from torch import Tensor

from knowformer.kernels.interface import Edges
from knowformer.views import _compiled
from knowformer.views._compiled import EdgeArrays, Graph, Scratch
from knowformer.views.extracted import Extracted, Scored
from knowformer.views.queries import Query
from knowformer.views.settings import Rules
from knowformer.views.tails import Ranks, Tails

ParallelMap = Callable[..., list[Any]]

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}

_lock = threading.Lock()  # Numba compiles one at a time


class CompiledExtraction:
    """Extracts views of one graph; several threads may call it."""

    def __init__(self, edges: Edges, ranks: Ranks, rules: Rules, parallel_map: ParallelMap) -> None:
        self._num_relations = edges.num_relations
        self._rules = rules
        self._ranks = ranks
        self._map = parallel_map
        self._graph = _graph_arrays(edges, Tails.of(edges, ranks))
        self._kept = threading.local()

    def extract(self, queries: Sequence[Query], *, outside: bool) -> Extracted:
        """Returns the views of queries, and on request what is outside of them."""

        def extract_one(query: Query) -> Any:
            graph, scratch = self._graph, self._scratch()
            members, others = np.arange(len(self._ranks), dtype=np.int32), Scored.nothing()
            if self._rules.size < len(members):
                found = Scored(*_call("reach", graph, scratch, self._rules, query, outside))
                members, others = found.choose(self._rules.size, self._ranks, outside=outside)
            return members, _call("collect", graph, scratch, query, members), others

        views = self._map(extract_one, queries)
        members, edges, others = map(list, zip(*views, strict=True))
        return Extracted(members, _join(edges, self._num_relations, self._map), others)

    def _scratch(self) -> Scratch:
        """Returns this thread's own."""
        kept: dict[str, Scratch] = self._kept.__dict__
        if "scratch" not in kept:
            kept["scratch"] = _new_scratch(self._graph)
        return kept["scratch"]


def _graph_arrays(edges: Edges, tails: Tails) -> Graph:
    return Graph(
        edges.offsets.numpy(),
        edges.sender.numpy(),
        edges.relation.numpy(),
        edges.sender_offsets.numpy(),
        edges.message_relation.numpy(),
        edges.message_offsets.numpy(),
        edges.receiver.numpy(),
        tails.offsets,
        tails.entities,
        tails.num_facts,
    )


def _new_scratch(graph: Graph) -> Scratch:
    number = len(graph.offsets) - 1
    return Scratch(
        degree=np.diff(graph.offsets),
        is_target=np.zeros(number, dtype=np.bool_),
        residual=np.zeros(number, dtype=np.int64),
        settled=np.zeros(number, dtype=np.int64),
        place=np.full(number, -1, dtype=np.int32),
        candidates=np.empty(number, dtype=np.int32),
        frontier=np.empty(number, dtype=np.int32),
        following=np.empty(number, dtype=np.int32),
        shares=np.empty(number, dtype=np.int64),
    )


def _join(views: Sequence[Any], num_relations: int, parallel_map: ParallelMap) -> Edges:
    """Lays views side by side; each is written by itself."""
    sizes = np.array([(len(bounds) - 1, len(receiver), len(relation))
                      for bounds, _, relation, _, receiver in views])  # fmt: skip
    starts = np.zeros((len(views) + 1, 3), dtype=np.int64)
    np.cumsum(sizes, axis=0, out=starts[1:])
    entities, edges, messages = starts[-1].tolist()

    def ints(size: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.empty(size, dtype=dtype)

    joined = Edges(
        num_entities=entities,
        num_relations=num_relations,
        offsets=ints(entities + 1),
        sender=ints(edges),
        relation=ints(edges),
        message=ints(edges),
        sender_offsets=ints(entities + 1),
        message_sender=ints(messages),
        message_relation=ints(messages),
        message_offsets=ints(messages + 1),
        receiver=ints(edges),
        by_message=ints(edges, torch.int64),
    )
    joined.offsets[-1] = joined.message_offsets[-1] = edges
    joined.sender_offsets[-1] = messages

    def lay_out(number: int) -> None:
        (entity, edge, message), last = starts[number].tolist(), starts[number + 1].tolist()
        rows, own_edges, own_messages = map(slice, (entity, edge, message), last)
        places = {"offsets": rows, "sender_offsets": rows}
        places |= dict.fromkeys(
            ("message_sender", "message_relation", "message_offsets"), own_messages
        )
        parts = [getattr(joined, name).numpy()[places.get(name, own_edges)]
                 for name in EdgeArrays._fields]  # fmt: skip
        _call("lay_out", views[number], edge, message, EdgeArrays(*parts))

    parallel_map(lay_out, range(len(views)))
    return joined


_functions: dict[str, Any] = {}


def _call(name: str, *arguments: Any) -> Any:
    """Calls a compiled function; its arguments are of the same types every time."""
    if name not in _functions:
        _functions[name] = _compile(getattr(_compiled, name), *arguments)
    return _functions[name](*arguments)


def _compile(function: Callable[..., Any], *arguments: Any) -> Any:
    """Compiles for these types; machine code is kept on disk where that is possible."""
    signature = tuple(map(typeof, arguments))
    with _lock:
        try:
            return njit(signature, cache=True, **OPTIONS)(function)
        except (RuntimeError, OSError):
            # No folder can be written for the cache: compile for this process alone.
            return njit(signature, **OPTIONS)(function)
