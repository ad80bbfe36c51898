"""What an extractor is asked: queries, and for each the answers that it must not see."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.inverse import inverse_of, with_inverse_facts

Ids = npt.NDArray[np.int64]
Hide = Literal["facts", "links"]


@dataclass(frozen=True)
class HiddenTargets:
    """Answers to hide: entity ``targets[f]`` from query ``rows[f]``.

    ``facts`` hides what the query asks for, (head, relation, target) and its inverse; ``links``
    every edge between the head and the target.
    """

    rows: Int[Tensor, " F"]
    targets: Int[Tensor, " F"]
    mode: Hide


@dataclass(frozen=True)
class HiddenFacts:
    """Facts of the graph to hide from every query, each in both directions; whatever they link."""

    facts: Int[Tensor, "F 3"]


NO_EDGES: Ids = np.empty((0, 3), dtype=np.int64)


class Query(NamedTuple):
    """A query, and what is hidden from it."""

    head: int
    relation: int
    inverse: int
    hides_links: bool
    targets: Ids  # distinct
    edges: Ids = NO_EDGES  # (sender, relation, receiver); if any, these are hidden and no others


def queries_of(
    heads: Int[Tensor, " B"],
    relations: Int[Tensor, " B"],
    hidden: HiddenTargets | HiddenFacts | None,
    num_relations: int,
) -> list[Query]:
    """Returns the queries one by one; ``num_relations`` counts those that are named."""
    if isinstance(hidden, HiddenFacts):
        edges = with_inverse_facts(hidden.facts, num_relations).numpy()
        edges = np.ascontiguousarray(np.unique(edges, axis=0))
        ends = np.unique(edges[:, [0, 2]])
        return [
            Query(head, relation, inverse_of(relation, num_relations), False, ends, edges)
            for head, relation in zip(heads.tolist(), relations.tolist(), strict=True)
        ]
    targets = [np.empty(0, dtype=np.int64)] * len(heads)
    if hidden is not None:
        rows = hidden.rows.numpy()
        order = np.argsort(rows, kind="stable")
        bounds = np.searchsorted(rows[order], np.arange(1, len(heads)))
        targets = [np.unique(some) for some in np.split(hidden.targets.numpy()[order], bounds)]
    links = hidden is not None and hidden.mode == "links"
    return [
        Query(head, relation, inverse_of(relation, num_relations), links, own)
        for head, relation, own in zip(heads.tolist(), relations.tolist(), targets, strict=True)
    ]
