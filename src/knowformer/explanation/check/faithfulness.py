"""Faithfulness of one explanation: what the answer loses without the evidence named for it.

The evidence is removed and the model asked again. The same is done with random evidence of the same
size, each piece as near to the question as the one it replaces: a fact on a walk from head to
answer of the same length, an entity at the same distance from the answer.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.evaluation.ranks import filtered_ranks
from knowformer.explanation.explanation import (
    EvidenceKind,
    Faithfulness,
    ScoreDrop,
    ScoreMargin,
    mean_of,
    verdict_on,
)
from knowformer.explanation.find.evidence import AnswerEvidence, EvidenceFinder
from knowformer.explanation.find.evidence_graph import EvidenceGraph, Integers
from knowformer.explanation.find.fact_probability import FactProbability
from knowformer.explanation.find.prediction import Prediction
from knowformer.queries.scores import Scores

Ask = Callable[[Collection[int]], ScoreMargin]  # asks the model again without some evidence


def score_margin(
    scores: Scores, prediction: Prediction, probability: FactProbability | None = None
) -> ScoreMargin:
    """Returns an answer's score against those of its competitors.

    One that its query does not see ranks below all that it sees, and is given their lowest score:
    the least that its log-odds can have lost.

    Args:
        scores: of the query alone.
        prediction: in ids of the whole graph.
        probability: makes probabilities of scores; if not given, log-odds become probabilities.
    """
    placed = prediction.within(scores.entities_of(0))
    log_odds = placed.log_odds(scores.values)
    answer = torch.tensor([prediction.answer])
    filtered = (~prediction.competitors).nonzero().squeeze(1)
    query, nothing = torch.zeros_like(answer), filtered[:0]
    ranks = filtered_ranks(scores, (torch.zeros_like(filtered), filtered), query, answer)
    among_all = filtered_ranks(scores, (nothing, nothing), query, answer)
    truth = torch.sigmoid(log_odds).item(), log_odds.item()
    if probability is not None:
        truth = probability.of(scores, prediction)
    return ScoreMargin(
        score=placed.score(scores.values).item(),
        log_odds=log_odds.item(),
        probability=truth[0],
        truth_log_odds=truth[1],
        rank=ranks.realistic.item(),
        rank_among_all=among_all.realistic.item(),
    )


class Removal:
    """Removes evidence of one prediction, or all but that evidence, and asks the model again."""

    def __init__(self, finder: EvidenceFinder, evidence: AnswerEvidence) -> None:
        self._tracer = finder.tracer
        self._sight = finder.sight
        self._probability = finder.probability
        self._graph = evidence.graph
        self._prediction = evidence.prediction
        self._answer = evidence.placed.answer

    def without(self, kind: EvidenceKind, pieces: Collection[int]) -> ScoreMargin:
        """Asks without these facts, or without attention to these entities."""
        return (self.without_facts if kind == "paths" else self.without_attending)(pieces)

    def alone(self, kind: EvidenceKind, pieces: Collection[int]) -> ScoreMargin:
        """Asks with these facts alone, or with attention to these entities alone."""
        return (self.with_facts_alone if kind == "paths" else self.attending_alone)(pieces)

    def without_facts(self, facts: Collection[int]) -> ScoreMargin:
        """Asks on the graph without these facts."""
        return self._ask(self._sight.without(self._prediction, self._graph.facts(facts)))

    def with_facts_alone(self, facts: Collection[int]) -> ScoreMargin:
        """Asks on a graph of these facts and no others."""
        return self._ask(self._sight.alone(self._prediction, self._graph.facts(facts)))

    def without_attending(self, entities: Collection[int]) -> ScoreMargin:
        """Asks with no entity attending to these, in any layer or head."""
        return self._ask(self._graph, self._weights(entities, inside=0.0))

    def attending_alone(self, entities: Collection[int]) -> ScoreMargin:
        """Asks with all entities attending to these and to the answer alone."""
        return self._ask(self._graph, self._weights(entities, inside=1.0))

    def _ask(
        self, graph: EvidenceGraph, attended: Float[Tensor, " n"] | None = None
    ) -> ScoreMargin:
        scores = self._tracer.score(self._prediction, graph, attended)
        return score_margin(scores, self._prediction, self._probability)

    def _weights(self, entities: Collection[int], *, inside: float) -> Float[Tensor, " n"]:
        weights = torch.full((self._graph.num_entities,), 1.0 - inside)
        weights[list(entities)] = inside
        # The answer is no evidence for itself, so attention to it stays.
        weights[self._answer] = 1.0
        return weights


@dataclass(frozen=True)
class RandomEvidence:
    """Draws random evidence in the place of named evidence, as near to the question.

    Facts, entities and predictions are in numbers of one ``EvidenceGraph``.
    """

    nearness: Integers  # of each fact or entity; smaller is nearer
    never: int | None = None  # the answer itself, which is no evidence

    @classmethod
    def of(
        cls, kind: EvidenceKind, graph: EvidenceGraph, prediction: Prediction
    ) -> "RandomEvidence":
        """Facts in the place of those of paths, entities in the place of entities."""
        return (cls.of_facts if kind == "paths" else cls.of_entities)(graph, prediction)

    @classmethod
    def of_facts(cls, graph: EvidenceGraph, prediction: Prediction) -> "RandomEvidence":
        """Facts, by the length of the shortest walk from head to answer through each."""
        return cls(graph.walk_lengths(prediction.head, prediction.answer))

    @classmethod
    def of_entities(cls, graph: EvidenceGraph, prediction: Prediction) -> "RandomEvidence":
        """Entities, by their distance from the answer."""
        return cls(graph.distances(prediction.answer), never=prediction.answer)

    def draw(self, named: Sequence[int], random: np.random.Generator) -> list[int]:
        """Returns a piece for each named one, as near as that or the next nearest; none twice.

        There are fewer than named ones only where all other pieces are drawn.
        """
        free = np.ones(len(self.nearness), dtype=bool)
        free[list(named)] = False
        if self.never is not None:
            free[self.never] = False
        drawn: list[int] = []
        for piece in named:
            left = np.flatnonzero(free)
            if len(left) == 0:
                break
            gap = np.abs(self.nearness[left] - self.nearness[piece])
            drawn.append(int(random.choice(left[gap == gap.min()])))
            free[drawn[-1]] = False
        return drawn


def check_evidence(
    evidence: AnswerEvidence,
    removal: Removal,
    *,
    before: ScoreMargin,
    num_draws: int,
    random: np.random.Generator,
) -> list[Faithfulness]:
    """Measures what the paths and the prototypes of an answer are worth to it, where it has any."""
    kinds: tuple[EvidenceKind, ...] = ("paths", "prototypes")
    return [
        measure(
            kind,
            pieces,
            partial(removal.without, kind),
            RandomEvidence.of(kind, evidence.graph, evidence.placed),
            before=before,
            num_draws=num_draws,
            random=random,
        )
        for kind in kinds
        if (pieces := evidence.pieces(kind))
    ]


def measure(
    kind: EvidenceKind,
    named: Sequence[int],
    ask_without: Ask,
    others: RandomEvidence,
    *,
    before: ScoreMargin,
    num_draws: int,
    random: np.random.Generator,
) -> Faithfulness:
    """Removes the named evidence, then random evidence in its place, ``num_draws`` times."""
    draws = [others.draw(named, random) for _ in range(num_draws)]
    drop = ScoreDrop.between(before, ask_without(named))
    at_random = [ScoreDrop.between(before, ask_without(draw)) for draw in draws]
    return Faithfulness(
        evidence=kind,
        size=len(named),
        loss=drop,
        random=at_random,
        verdict=verdict_on(
            drop.truth_log_odds,
            mean_of(at_random, "truth_log_odds"),
            beats_random=all(drop.truth_log_odds > other.truth_log_odds for other in at_random),
        ),
    )
