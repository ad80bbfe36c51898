"""Sight: what a query sees of a graph, or of the graph that removing evidence would leave."""

from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.prediction import Prediction
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.extractor import extractor_of
from knowformer.views.queries import HiddenFacts, HiddenTargets
from knowformer.views.settings import ViewSettings


class Sight:
    """What queries see of one graph: all of it, or each its view. No query sees its own fact.

    A view is made anew on the facts that are left: without some of them the model would have looked
    elsewhere.
    """

    def __init__(self, graph: KnowledgeGraph, settings: ViewSettings | None) -> None:
        """Takes a graph.

        Args:
            graph: the graph.
            settings: of views; None: queries see the whole graph.
        """
        self._adjacency = graph.adjacency
        self._entity_keys = graph.entity_keys
        self._settings = settings

    def of(self, prediction: Prediction) -> EvidenceGraph:
        """Returns what a prediction's query sees."""
        return self.without(prediction, torch.zeros(0, 3, dtype=torch.long))

    def without(self, prediction: Prediction, facts: Int[Tensor, "N 3"]) -> EvidenceGraph:
        """Returns what the query sees when these facts of the graph are not there."""
        if self._settings is None:
            hidden = torch.cat([facts, _fact(prediction)])
            return self._part(self._adjacency.without_facts(hidden))
        own = _fact(prediction)
        hidden = torch.cat([facts, own[self._adjacency.has_fact(own)]])
        return self._view(prediction, self._adjacency, self._settings, HiddenFacts(hidden))

    def alone(self, prediction: Prediction, facts: Int[Tensor, "N 3"]) -> EvidenceGraph:
        """Returns what the query sees when only these facts of the graph are there."""
        adjacency = self._adjacency
        if self._settings is None:
            return self._part(~adjacency.without_facts(facts))
        left = Adjacency(
            facts, num_entities=adjacency.num_entities, num_relations=adjacency.num_relations
        )
        own = HiddenTargets(torch.tensor([0]), torch.tensor([prediction.answer]), "facts")
        return self._view(prediction, left, self._settings, own)

    @cached_property
    def _whole(self) -> EvidenceGraph:
        return EvidenceGraph(self._adjacency.edges)

    def _part(self, kept: Bool[Tensor, " E"]) -> EvidenceGraph:
        # The whole is kept, since it numbers its facts once.
        return self._whole if kept.all() else EvidenceGraph(self._adjacency.edges.keep(kept))

    def _view(
        self,
        prediction: Prediction,
        adjacency: Adjacency,
        settings: ViewSettings,
        hidden: HiddenFacts | HiddenTargets,
    ) -> EvidenceGraph:
        head, relation, _ = _fact(prediction).unbind(1)
        extractor = extractor_of(adjacency, self._entity_keys, settings)
        views = extractor.extract(head, relation, hidden=hidden, outside=True)
        return EvidenceGraph(views.view.edges, views.entities, views.outside)


def _fact(prediction: Prediction) -> Int[Tensor, "1 3"]:
    return torch.tensor([[prediction.head, prediction.relation, prediction.answer]])
