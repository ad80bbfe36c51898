"""How far an explanation can be trusted: what an answer loses without the evidence named for it.

The evidence is removed and the model asked again. The same is done with other evidence of the same
size, drawn at random as near to the question as the evidence that it stands in for: a fact on a
walk from head to answer of the same length, an entity at the same distance from the answer.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.evaluation.ranks import filtered_ranks
from knowformer.explanation.explanation import (
    EvidenceKind,
    Faithfulness,
    Loss,
    Standing,
    mean_of,
    verdict_on,
)
from knowformer.explanation.find.evidence_graph import EvidenceGraph, Integers
from knowformer.explanation.find.tracing import Prediction, Tracer
from knowformer.kernels.interface import Edges
from knowformer.queries.scores import Scores

Ask = Callable[[Collection[int]], Standing]


def standing(scores: Float[Tensor, " V"], prediction: Prediction) -> Standing:
    """Returns how an answer stands among its rivals."""
    log_odds = prediction.log_odds(scores)
    at = torch.tensor([prediction.answer])
    known = (~prediction.rivals).nonzero().squeeze(1)
    queries = torch.zeros_like(at)
    ranks = filtered_ranks(
        Scores.of_all(scores[None]), (torch.zeros_like(known), known), queries, at
    )
    return Standing(
        score=scores[prediction.answer].item(),
        log_odds=log_odds.item(),
        probability=torch.sigmoid(log_odds).item(),
        rank=ranks.realistic.item(),
    )


class Removal:
    """Removes evidence of one prediction, or all but that evidence, and asks the model again."""

    def __init__(self, tracer: Tracer, graph: EvidenceGraph, prediction: Prediction) -> None:
        self._tracer = tracer
        self._graph = graph
        self._prediction = prediction

    def without_facts(self, facts: Collection[int]) -> Standing:
        """Asks without these facts."""
        return self._ask(self._graph.without(facts))

    def with_facts_alone(self, facts: Collection[int]) -> Standing:
        """Asks with these facts and no others."""
        return self._ask(self._graph.only(facts))

    def without_attending(self, entities: Collection[int]) -> Standing:
        """Asks with these entities attended to by none, in any layer or head."""
        return self._ask(self._graph.edges, self._weights(entities, inside=0.0))

    def attending_alone(self, entities: Collection[int]) -> Standing:
        """Asks with these entities and the answer attended to, and no others."""
        return self._ask(self._graph.edges, self._weights(entities, inside=1.0))

    def _ask(self, edges: Edges, attended: Float[Tensor, " V"] | None = None) -> Standing:
        return standing(self._tracer.score(self._prediction, edges, attended), self._prediction)

    def _weights(self, entities: Collection[int], *, inside: float) -> Float[Tensor, " V"]:
        weights = torch.full((self._graph.num_entities,), 1.0 - inside)
        weights[list(entities)] = inside
        # The answer is no evidence for itself: it stays.
        weights[self._prediction.answer] = 1.0
        return weights


@dataclass(frozen=True)
class RandomEvidence:
    """Draws evidence in the place of other evidence, as near to the question."""

    nearness: Integers  # of each fact or entity; smaller is nearer
    never: int | None = None  # an entity that is no evidence: the answer itself

    @classmethod
    def of_facts(cls, graph: EvidenceGraph, prediction: Prediction) -> "RandomEvidence":
        """Facts, by the length of the shortest walk from head to answer through each."""
        return cls(graph.walk_lengths(prediction.head, prediction.answer))

    @classmethod
    def of_entities(cls, graph: EvidenceGraph, prediction: Prediction) -> "RandomEvidence":
        """Entities, by their distance from the answer."""
        return cls(graph.distances(prediction.answer), never=prediction.answer)

    def draw(self, named: Sequence[int], random: np.random.Generator) -> list[int]:
        """Returns other evidence, each as near as the one it stands in for, or next to it.

        It is shorter than ``named`` only when there is not so much other evidence.
        """
        free = np.ones(len(self.nearness), dtype=bool)
        free[list(named)] = False
        if self.never is not None:
            free[self.never] = False
        drawn: list[int] = []
        for place in named:
            left = np.flatnonzero(free)
            if len(left) == 0:
                break
            gap = np.abs(self.nearness[left] - self.nearness[place])
            drawn.append(int(random.choice(left[gap == gap.min()])))
            free[drawn[-1]] = False
        return drawn


def measure(
    kind: EvidenceKind,
    named: Sequence[int],
    ask_without: Ask,
    others: RandomEvidence,
    *,
    before: Standing,
    num_draws: int,
    random: np.random.Generator,
) -> Faithfulness:
    """Removes the named evidence, then as often random evidence in its place."""
    draws = [others.draw(named, random) for _ in range(num_draws)]
    loss = Loss.between(before, ask_without(named))
    at_random = [Loss.between(before, ask_without(draw)) for draw in draws]
    return Faithfulness(
        evidence=kind,
        size=len(named),
        loss=loss,
        random=at_random,
        verdict=verdict_on(
            loss.log_odds,
            mean_of(at_random, "log_odds"),
            beats_random=all(loss.log_odds > other.log_odds for other in at_random),
        ),
    )
