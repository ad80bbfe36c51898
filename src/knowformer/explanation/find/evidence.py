"""What speaks for a prediction, in ids: the heaviest paths and the most influential entities."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.explanation.find.attention_rows import AttentionRows
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.paths import USUAL_LENGTH, FoundPath, find_paths
from knowformer.explanation.find.tracing import Prediction, Trace, Tracer, find_rivals
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers
from knowformer.scoring.scorer import Scorer

NUM_PATHS = 5
NUM_PROTOTYPES = 10
CANDIDATES = 60  # paths looked at, the widest, to take the heaviest of


@dataclass(frozen=True)
class Evidence:
    """The evidence for one prediction, the strongest first."""

    graph: EvidenceGraph
    trace: Trace
    distance: int  # from head to answer in facts; see ``traversal.UNREACHED``
    paths: list[FoundPath]
    prototypes: list[int]  # entities with the largest influence
    attended: list[int]  # entities with the largest attention

    def facts(self, num_paths: int | None = None) -> list[int]:
        """Returns the facts of the first paths, each once, in order."""
        edges = [edge for path in self.paths[:num_paths] for edge in path.edges]
        facts: list[int] = self.graph.fact_of_edge[edges].tolist() if edges else []
        return list(dict.fromkeys(facts))


class EvidenceFinder:
    """A model on a graph, and what is known to be true of it."""

    def __init__(
        self,
        model: KnowFormer,
        graph: KnowledgeGraph,
        known_facts: Int[Tensor, "N 3"],
        *,
        seed: int,
    ) -> None:
        """Binds a model to a graph.

        Args:
            model: the model.
            graph: its facts are what the model sees, and what it is explained by.
            known_facts: facts known to be true; their answers are no rivals.
            seed: of the identity noise, so that scores are those of answers and evaluations.
        """
        self.graph = graph
        self.tracer = Tracer(model, Scorer(model, graph, seed=seed).identity_noise)
        self._known = KnownAnswers(
            known_facts, num_entities=len(graph.entities), num_relations=len(graph.relations)
        )
        self._whole = EvidenceGraph(graph.adjacency)

    def prediction(self, head: int, relation: int, answer: int) -> Prediction:
        """Returns an answer to (head, relation, ?) with its rivals; the relation may be inverse."""
        known = self._known.mask(torch.tensor([head]), torch.tensor([relation]))[0]
        return Prediction(head, relation, answer, find_rivals(known, answer))

    def find(
        self,
        prediction: Prediction,
        *,
        num_paths: int = NUM_PATHS,
        num_prototypes: int = NUM_PROTOTYPES,
    ) -> Evidence:
        """Finds the evidence for a prediction; the predicted fact itself is no evidence."""
        graph = self._without_fact(prediction)
        head, answer = prediction.head, prediction.answer
        trace = self.tracer.trace(prediction, graph.edges)
        distance = int(graph.distances(head)[answer])
        hops = trace.hops.double().numpy()
        paths = find_paths(
            graph,
            hops,
            graph.per_fact(hops.sum(0)),
            head=head,
            answer=answer,
            count=max(CANDIDATES, num_paths),
            max_length=min(len(hops), max(USUAL_LENGTH, distance)),
        )
        rows = trace.attention
        return Evidence(
            graph=graph,
            trace=trace,
            distance=distance,
            paths=paths[:num_paths],
            prototypes=[] if rows is None else rows.most_influential(num_prototypes, answer),
            attended=[] if rows is None else rows.most_attended(num_prototypes, answer),
        )

    def attention(self, prediction: Prediction) -> AttentionRows | None:
        """Returns what an answer attends to; None if the model has no attention."""
        return self.tracer.attention(prediction, self._without_fact(prediction).edges)

    def _without_fact(self, prediction: Prediction) -> EvidenceGraph:
        fact = torch.tensor([[prediction.head, prediction.relation, prediction.answer]])
        if bool(self.graph.adjacency.without_facts(fact).all()):
            return self._whole
        return EvidenceGraph(self.graph.adjacency, hidden=fact)
