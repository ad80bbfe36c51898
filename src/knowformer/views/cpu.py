"""Views by compiled code: threads extract them, then lay them side by side."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numba import njit, typeof
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.inverse import num_with_inverses
from knowformer.kernels.interface import Edges
from knowformer.system.notices import if_slow
from knowformer.views._compiled_edges import EdgeArrays, collect, lay_out
from knowformer.views._compiled_graph import DEGREE, Graph, Scratch
from knowformer.views._compiled_reach import priors, reach
from knowformer.views.extracted import FOREMOST, Extracted, Scored
from knowformer.views.queries import Query
from knowformer.views.settings import Rules
from knowformer.views.tails import Ranks, tails_of

ParallelMap = Callable[..., list[Any]]

SOURCES = ("_compiled_graph.py", "_compiled_reach.py", "_compiled_edges.py")
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}

_logger = logging.getLogger(__name__)


class CompiledExtraction:
    """Extracts views of one graph; several threads may call it."""

    def __init__(
        self, adjacency: Adjacency, ranks: Ranks, rules: Rules, parallel_map: ParallelMap
    ) -> None:
        self._num_relations = num_with_inverses(adjacency.num_relations)
        self._rules = rules
        self._ranks = ranks
        self._map = parallel_map
        self._graph = Graph(*adjacency.lists, *tails_of(adjacency, ranks))
        self._kept = threading.local()

    def extract(self, queries: Sequence[Query], *, outside: bool) -> Extracted:
        """Returns the views of queries, and on request what is outside of them."""

        def extract_one(query: Query) -> Any:
            graph, scratch = self._graph, self._scratch()
            members, others = np.arange(len(self._ranks), dtype=np.int32), Scored.nothing()
            if self._rules.size < len(members):
                found = self._scored(graph, scratch, query, outside)
                members, others = found.choose(self._rules.size, self._ranks, outside=outside)
            return members, _collect(graph, scratch, query, members), others

        views = self._map(extract_one, queries)
        members, edges, others = map(list, zip(*views, strict=True))
        return Extracted(members, _join(edges, self._num_relations, self._map), others)

    def _scored(self, graph: Graph, scratch: Scratch, query: Query, outside: bool) -> Scored:
        """Returns the entities that may be in a view; scores are right where that matters."""
        found = _reach(graph, scratch, self._rules, query, outside)
        entities, scores, has_prior, missing = found
        scores[entities == query.head] = FOREMOST
        if missing:
            # Rare tails are many: only those that their prior may bring in or out are looked up.
            in_doubt = Scored(entities, scores).in_doubt(self._rules.size, missing) & ~has_prior
            scores[in_doubt] += _priors(graph, scratch, self._rules, query, entities[in_doubt])
        return Scored(entities, scores)

    def _scratch(self) -> Scratch:
        """Returns this thread's own."""
        kept: dict[str, Scratch] = self._kept.__dict__
        if "scratch" not in kept:
            kept["scratch"] = _new_scratch(self._graph)
        return kept["scratch"]


def _new_scratch(graph: Graph) -> Scratch:
    number = len(graph.offsets) - 1
    state = np.zeros((number, 4), dtype=np.int64)
    state[:, DEGREE] = np.diff(graph.offsets)
    return Scratch(
        is_target=np.zeros(number, dtype=np.bool_),
        state=state,
        is_inside=np.zeros(number // 64 + 1, dtype=np.uint64),
        place=np.empty(number, dtype=np.int32),
        candidates=np.empty(number, dtype=np.int32),
        frontier=np.empty(number, dtype=np.int32),
        following=np.empty(number, dtype=np.int32),
        shares=np.empty(number, dtype=np.int64),
    )


def _join(views: Sequence[Any], num_relations: int, parallel_map: ParallelMap) -> Edges:
    """Lays views side by side; each is written by itself."""
    sizes = [(len(view[0]) - 1, len(view[-1]), len(view[2])) for view in views]
    starts = np.concatenate([[(0, 0, 0)], np.cumsum(sizes, axis=0)]).tolist()
    entities, edges, messages = starts.pop()

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
    arrays = EdgeArrays(*(getattr(joined, name).numpy() for name in EdgeArrays._fields))

    def write(number: int) -> None:
        _lay_out(views[number], *starts[number], arrays)

    parallel_map(write, range(len(views)))
    return joined


class _Compiled:
    """A function, compiled when it is first called; arguments have the same types every time."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._machine_code: Any = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        if self._machine_code is None:
            with self._lock, if_slow(_say_once):
                self._machine_code = self._machine_code or self._compile(*arguments)
        return self._machine_code(*arguments)

    def _compile(self, *arguments: Any) -> Any:
        """Machine code is kept on disk where that is possible."""
        signature = tuple(map(typeof, arguments))
        self._function.__qualname__ = f"{self._function.__name__}_{_source_digest()}"
        try:
            return njit(signature, cache=True, **OPTIONS)(self._function)
        except (RuntimeError, OSError):
            # No folder can be written for the cache: compile for this process alone.
            return njit(signature, **OPTIONS)(self._function)


@cache
def _say_once() -> None:
    _logger.info("Loading the extraction of views; the first start on this machine compiles it.")


@cache
def _source_digest() -> str:
    """A name for this version of the code: Numba's cache looks at one file, it spans several."""
    sources = b"".join(Path(__file__).with_name(name).read_bytes() for name in SOURCES)
    return blake2b(sources, digest_size=8).hexdigest()


_reach, _priors, _collect, _lay_out = map(_Compiled, (reach, priors, collect, lay_out))
