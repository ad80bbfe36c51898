"""ViewExtractor: makes for every query its own part of the graph.

A view of (h, r, ?) is the K entities with the largest PageRank from h plus weighted prior, with all
edges among them, on the graph without what is hidden from the query. The prior of an entity is the
share of r's facts that have it as tail: it brings in entities of the right kind.
"""

import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.id_ranges import check_facts
from knowformer.graph.inverse import num_with_inverses
from knowformer.kernels.interface import QueryView, check_ids
from knowformer.views.extracted import Extracted, Scored
from knowformer.views.queries import HiddenFacts, HiddenTargets, Query, queries_of
from knowformer.views.reference import ReferenceExtraction
from knowformer.views.settings import Rules, ViewSettings
from knowformer.views.tails import name_ranks
from knowformer.views.views import Outside, Views

ParallelMap = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]

_logger = logging.getLogger(__name__)


@runtime_checkable
class Extraction(Protocol):
    """How views are made: by compiled code, or in plain Python where there is no Numba."""

    def extract(self, queries: Sequence[Query], *, outside: bool) -> Extracted:
        """Returns the views of queries, and on request what is outside of them."""
        ...


def extractor_of(
    adjacency: Adjacency, entity_keys: npt.NDArray[np.uint64], settings: ViewSettings
) -> "ViewExtractor":
    """Returns the extractor of a graph, made once and kept with its edges."""
    if settings not in adjacency.memo:
        adjacency.memo[settings] = ViewExtractor(adjacency, entity_keys, settings)
    return adjacency.memo[settings]


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Runs in the caller's thread."""
    return [function(item) for item in items]


class ViewExtractor:
    """Extracts views of one graph. Several threads may call it."""

    def __init__(
        self,
        adjacency: Adjacency,
        entity_keys: npt.NDArray[np.uint64],
        settings: ViewSettings,
        *,
        parallel_map: ParallelMap = one_by_one,
    ) -> None:
        """Prepares a graph.

        Args:
            adjacency: its edges.
            entity_keys: a key per entity that follows its name, so that a renumbered graph has the
                same views.
            settings: of views.
            parallel_map: runs the queries of a batch on several threads, whose number changes the
                speed alone.
        """
        self.settings = settings
        self._adjacency = adjacency
        ranks = name_ranks(entity_keys)
        self._extraction = _select(adjacency, ranks, Rules.of(settings), parallel_map)

    @property
    def sees_all(self) -> bool:
        """Whether views are the whole graph."""
        return self.settings.size >= self._adjacency.num_entities

    def extract(
        self,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        *,
        hidden: HiddenTargets | HiddenFacts | None = None,
        outside: bool = False,
    ) -> Views:
        """Returns what each query sees.

        Args:
            heads: of the queries.
            relations: of the queries, each may be an inverse.
            hidden: what they must not see; a view is made as if it were not in the graph.
            outside: whether to return also the entities with a score that are in no view.

        Raises:
            DataError: an id is out of range.
        """
        self._check(heads, relations, hidden)
        if not len(heads) or (self.sees_all and hidden is None):
            return self._whole(heads, outside=outside)
        queries = queries_of(heads, relations, hidden, self._adjacency.num_relations)
        found = self._extraction.extract(queries, outside=outside)
        starts = _offsets([len(members) for members in found.members])
        places = [
            int(np.searchsorted(members, query.head))
            for members, query in zip(found.members, queries, strict=True)
        ]
        view = QueryView(found.edges, starts, starts[:-1], torch.tensor(places))
        entities = torch.from_numpy(np.concatenate(found.members).astype(np.int64))
        return Views(view, entities, _joined(found.outside) if outside else None)

    def _check(
        self,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        hidden: HiddenTargets | HiddenFacts | None,
    ) -> None:
        """Compiled code goes by these ids and does not look whether they are in range."""
        sizes = {
            "num_entities": self._adjacency.num_entities,
            "num_relations": num_with_inverses(self._adjacency.num_relations),
        }
        check_ids(heads, sizes["num_entities"], "head")
        check_ids(relations, sizes["num_relations"], "relation")
        if isinstance(hidden, HiddenFacts):
            check_facts(hidden.facts, **sizes, where="what is hidden")
        elif hidden is not None:
            check_ids(hidden.rows, len(heads), "query")
            check_ids(hidden.targets, sizes["num_entities"], "target")

    def _whole(self, heads: Int[Tensor, " B"], *, outside: bool) -> Views:
        """Queries from which nothing is hidden share one graph."""
        entities = torch.arange(self._adjacency.num_entities).repeat(len(heads))
        nothing = _joined([Scored.nothing()] * len(heads)) if outside else None
        return Views(QueryView.whole(self._adjacency.edges, heads), entities, nothing)


def _select(
    adjacency: Adjacency, ranks: npt.NDArray[np.int32], rules: Rules, parallel_map: ParallelMap
) -> Extraction:
    if find_spec("numba") is None:
        _logger.info("Numba is not installed: views are extracted in Python, many times slower.")
        return ReferenceExtraction(adjacency, ranks, rules)
    # Imported when chosen: Numba takes a while to load.
    compiled: Any = importlib.import_module("knowformer.views.cpu")
    return compiled.CompiledExtraction(adjacency, ranks, rules, parallel_map)


def _joined(parts: Sequence[Scored]) -> Outside:
    entities, scores = map(np.concatenate, zip(Scored.nothing(), *parts, strict=True))
    return Outside(
        _offsets([len(part.entities) for part in parts]),
        torch.from_numpy(entities.astype(np.int64)),
        torch.from_numpy(scores),
    )


def _offsets(lengths: Sequence[int]) -> Tensor:
    """Where each of several runs starts when they stand end to end, and where the last one ends."""
    return torch.from_numpy(np.cumsum([0, *lengths]))
