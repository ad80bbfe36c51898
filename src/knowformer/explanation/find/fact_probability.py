"""FactProbability: the probability of an explained answer, as ``answer`` gives it."""

import math

import torch

from knowformer.calibration.calibrator import Calibrator, ProbabilityKind
from knowformer.calibration.features import query_features
from knowformer.explanation.find.prediction import Prediction
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.scores import Scores

LEAST = 1e-12  # of what is left to others


class FactProbability:
    """Turns the scores of a query into the probability of one answer."""

    def __init__(self, calibrator: Calibrator, graph: KnowledgeGraph) -> None:
        """Binds a calibrator to a graph, whose facts are what the model sees."""
        self._calibrator = calibrator
        self._seen = KnownAnswers.of(graph)

    @property
    def kind(self) -> ProbabilityKind:
        """Returns what the probabilities are."""
        return self._calibrator.kind

    def of(self, scores: Scores, prediction: Prediction) -> tuple[float, float]:
        """Returns the probability of an answer, and the log-odds that it is made of.

        The fact itself counts as one that is not there. Log-odds rise with the probability, and go
        on where it is flat: near 0, near 1 and on a curve's steps.

        Args:
            scores: of the query alone.
            prediction: in ids of the whole graph.
        """
        relation, first = torch.tensor([prediction.relation]), torch.tensor([0])
        rows, tails = self._seen.lookup(torch.tensor([prediction.head]), relation)
        others = tails != prediction.answer
        seen = scores.mask(rows[others], tails[others])
        score = scores.at(first, torch.tensor([prediction.answer]))
        features = query_features(scores, seen, relation)
        found = self._calibrator.probabilities(score[:, None], features)
        value, log_odds = float(found.values[0, 0]), float(found.log_odds[0, 0])
        if self.kind == "model":  # what orders uncalibrated probabilities is their logarithm
            log_odds -= math.log(max(-math.expm1(log_odds), LEAST))
        return value, log_odds
