"""Evidence for a prediction, in ids: the heaviest paths and the most influential entities."""

from dataclasses import dataclass

import torch

from knowformer.calibration.calibrator import Calibrator
from knowformer.choices import NUM_PATHS, NUM_PROTOTYPES
from knowformer.data.dataset import Split
from knowformer.explanation.explanation import EvidenceKind
from knowformer.explanation.find.attention_rows import AttentionRows
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.fact_probability import FactProbability
from knowformer.explanation.find.paths import USUAL_LENGTH, EdgePath, find_paths
from knowformer.explanation.find.prediction import NOT_SEEN, Prediction, find_competitors
from knowformer.explanation.find.sight import Sight
from knowformer.explanation.find.tracing import Trace, Tracer
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.traversal import UNREACHED
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers

CANDIDATES = 60  # the widest paths, of which the heaviest are named


@dataclass(frozen=True)
class AnswerEvidence:
    """What speaks for one prediction, the strongest first; in numbers of ``graph``."""

    prediction: Prediction  # in ids of the whole graph
    graph: EvidenceGraph
    trace: Trace
    distance: int  # from head to answer in facts; see ``traversal.UNREACHED``
    paths: list[EdgePath]
    prototypes: list[int]  # entities with the largest influence
    attended: list[int]  # entities with the largest attention

    @property
    def placed(self) -> Prediction:
        """The prediction in numbers of ``graph``."""
        return self.prediction.within(self.graph.entities)

    @property
    def sees_answer(self) -> bool:
        """Whether the answer is among the entities that the query sees."""
        return self.placed.answer != NOT_SEEN

    def pieces(self, kind: EvidenceKind, count: int | None = None) -> list[int]:
        """Returns what a check removes: the facts of the first paths, or the first entities.

        Args:
            kind: which evidence.
            count: how many paths or entities; all of them if not given.
        """
        if kind == "paths":
            return self._facts(self.paths[:count])
        return (self.prototypes if kind == "prototypes" else self.attended)[:count]

    def _facts(self, paths: list[EdgePath]) -> list[int]:
        """Returns the facts of paths, each once, in order."""
        edges = [edge for path in paths for edge in path.edges]
        facts: list[int] = self.graph.fact_of_edge[edges].tolist() if edges else []
        return list(dict.fromkeys(facts))


class EvidenceFinder:
    """A model on a graph: finds the evidence for its predictions."""

    def __init__(
        self,
        model: KnowFormer,
        graph: KnowledgeGraph,
        known: KnownAnswers,
        *,
        seed: int,
        calibrator: Calibrator | None = None,
    ) -> None:
        """Binds a model to a graph.

        Args:
            model: the model.
            graph: its facts are what the model sees, and what answers are explained by.
            known: answers known to be true, which compete with no other.
            seed: of the identity noise, so that scores are those of answers and evaluations.
            calibrator: makes probabilities as answers have them.
        """
        self.graph = graph
        self.tracer = Tracer(model, graph, seed=seed)
        self.sight = Sight(graph, model.config.view_of(len(graph.entities)))
        self.probability = calibrator and FactProbability(calibrator, graph)
        self._known = known

    @classmethod
    def on_split(cls, model: KnowFormer, split: Split, *, seed: int) -> "EvidenceFinder":
        """Returns a finder for the facts of a split, on its graph."""
        return cls(model, split.graph, KnownAnswers.of_split(split), seed=seed)

    def prediction(self, head: int, relation: int, answer: int) -> Prediction:
        """Returns an answer to (head, relation, ?) with its competitors."""
        known = self._known.mask(torch.tensor([head]), torch.tensor([relation]))[0]
        return Prediction(head, relation, answer, find_competitors(known, answer))

    def find(
        self,
        prediction: Prediction,
        *,
        num_paths: int = NUM_PATHS,
        num_prototypes: int = NUM_PROTOTYPES,
    ) -> AnswerEvidence:
        """Finds the evidence for a prediction; the predicted fact itself is no evidence.

        There is none for an answer that its query does not see.
        """
        graph = self.sight.of(prediction)
        placed = prediction.within(graph.entities)
        head, answer = placed.head, placed.answer
        if answer == NOT_SEEN:
            return self._not_seen(prediction, graph)
        trace = self.tracer.trace(prediction, graph)
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
        return AnswerEvidence(
            prediction=prediction,
            graph=graph,
            trace=trace,
            distance=distance,
            paths=paths[:num_paths],
            prototypes=[] if rows is None else rows.most_influential(num_prototypes, answer),
            attended=[] if rows is None else rows.most_attended(num_prototypes, answer),
        )

    def _not_seen(self, prediction: Prediction, graph: EvidenceGraph) -> AnswerEvidence:
        scores = self.tracer.score(prediction, graph)
        trace = Trace(scores, torch.zeros(0, len(graph.sender)), None)
        return AnswerEvidence(prediction, graph, trace, UNREACHED, [], [], [])

    def attention(self, prediction: Prediction) -> AttentionRows | None:
        """Returns what an answer attends to in the whole graph.

        None if the model has no attention, or the query does not see the answer.
        """
        graph = self.sight.of(prediction)
        if prediction.within(graph.entities).answer == NOT_SEEN:
            return None
        rows = self.tracer.attention(prediction, graph)
        return rows and rows.spread(graph.entities, len(self.graph.entities))
