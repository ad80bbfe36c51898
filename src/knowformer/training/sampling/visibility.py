"""What the queries of a training batch see: the graph, or each its part of it, without answers."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.kernels.interface import QueryView
from knowformer.queries.query import QueryBatch
from knowformer.training.sampling.edge_removal import HiddenEdges, visible_edges
from knowformer.training.sampling.epochs import TrainingGraph
from knowformer.views.extractor import ViewExtractor
from knowformer.views.queries import HiddenTargets


@dataclass(frozen=True)
class SeenBatch:
    """A batch and what its queries see; equal relations are side by side, as they share work."""

    graph: TrainingGraph
    batch: QueryBatch
    view: QueryView
    entities: Int[Tensor, " N"] | None  # of each row; None: every query sees all
    entity_keys: npt.NDArray[np.uint64]  # of the view's entities


def see_whole_graph(
    graph: TrainingGraph,
    batch: QueryBatch,
    *,
    hide: HiddenEdges,
    edge_dropout: float,
    generator: torch.Generator,
) -> SeenBatch:
    """Lets every query see the graph without what would leak an answer of the batch.

    Args:
        graph: the training graph.
        batch: the queries.
        hide: see ``visible_edges``.
        edge_dropout: fraction of the other edges to hide.
        generator: draws the edges to drop.
    """
    edges = visible_edges(
        graph.adjacency, batch, hide=hide, dropout=edge_dropout, generator=generator
    )
    batch = batch.by_relation()
    return SeenBatch(graph, batch, QueryView.whole(edges, batch.heads), None, graph.entity_keys)


def see_views(
    extractor: ViewExtractor,
    graph: TrainingGraph,
    batch: QueryBatch,
    *,
    hide: HiddenEdges,
    edge_dropout: float,
    generator: torch.Generator,
) -> SeenBatch:
    """Lets every query see its view of the graph, made as if its own answers were not known.

    An answer outside of the view cannot be learned from it: such targets are left out, and queries
    that have no other ones.

    Args:
        extractor: makes views of the graph.
        graph: the training graph.
        batch: the queries.
        hide: which edges are hidden from a query; see ``HiddenTargets``.
        edge_dropout: fraction of the other edges to hide.
        generator: draws the edges to drop.
    """
    batch = batch.by_relation()
    hidden = HiddenTargets(batch.rows, batch.tails, hide)
    views = extractor.extract(batch.heads, batch.relations, hidden=hidden)
    view, entities = views.view, views.entities
    is_seen = views.contains(batch.rows, batch.tails)
    has_target = torch.zeros(len(batch), dtype=torch.bool)
    has_target[batch.rows[is_seen]] = True
    keys = graph.entity_keys[entities.numpy()]
    if not has_target.all():
        row_of = torch.repeat_interleave(torch.arange(len(batch)), view.offsets.diff())
        entities = entities[has_target[row_of]]
        view = view.select(has_target.nonzero().squeeze(1))
    if edge_dropout:
        kept = torch.rand(len(view.edges.sender), generator=generator) >= edge_dropout
        view = replace(view, edges=view.edges.keep(kept))
    return SeenBatch(graph, batch.keep(has_target, is_seen), view, entities, keys)
