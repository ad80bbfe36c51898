"""Judge: scores to probabilities, calibrated where a calibration exists, and comparable keys."""

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.calibration.calibration import Calibration, Curve, Side
from knowformer.calibration.sample import (
    Floats,
    Ints,
    OwnProbability,
    crowd,
    num_candidates,
)
from knowformer.graph.inverse import base_relation, is_inverse
from knowformer.graph.vocabulary import Vocabulary

ProbabilityKind = Literal["calibrated", "model"]

LOWEST = -1e30  # instead of -inf, which times zero is not a number


@dataclass(frozen=True)
class Context:
    """What a score is judged against, a row per question."""

    relations: Ints  # as asked: an inverse asks for heads
    crowd: Floats
    num_seen: Ints
    num_candidates: Floats
    total: Floats  # log of the sum of exp(score) over all entities

    def take(self, rows: Ints) -> "Context":
        """Returns these rows, in this order."""
        return Context(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True)
class Verdict:
    """Probabilities, and log-odds that order what probabilities leave tied."""

    probability: Floats
    log_odds: Floats

    def __getitem__(self, at: Any) -> "Verdict":
        return Verdict(self.probability[at], self.log_odds[at])

    def order(self) -> Ints:
        """Returns positions from most to least probable."""
        return np.lexsort((-self.log_odds, -self.probability))


class Judge:
    """Turns the scores of one model into probabilities."""

    def __init__(
        self, calibration: Calibration | None, own: OwnProbability, relations: Vocabulary
    ) -> None:
        self._calibration = calibration
        self._own: OwnProbability = own
        self._relations = relations

    @property
    def kind(self) -> ProbabilityKind:
        """Returns what the probabilities are."""
        return "model" if self._calibration is None else "calibrated"

    def context(
        self,
        scores: Float[Tensor, "B V"],
        seen: Bool[Tensor, "B V"],
        relations: Int[Tensor, " B"],
    ) -> Context:
        """Returns what the scores of these questions are judged against."""
        return Context(
            relations=relations.numpy(),
            crowd=crowd(scores, seen).numpy(),
            num_seen=seen.sum(1).numpy(),
            num_candidates=num_candidates(seen).numpy(),
            total=scores.double().logsumexp(1).numpy(),
        )

    def judge(self, scores: Float[Tensor, "B K"], context: Context) -> Verdict:
        """Judges some candidates of each question; what is left out, at -inf, gets nothing."""
        score = np.maximum(scores.double().numpy(), LOWEST)
        if self._calibration is None:
            total = context.total[:, None]
            own = score - total if self._own == "softmax" else -np.logaddexp(0.0, -score)
            return Verdict(np.exp(own), own)
        log_odds = self._calibration.log_odds(
            score,
            context.crowd[:, None],
            context.num_seen[:, None],
            context.num_candidates[:, None],
        )
        curves = [self._curve(relation) for relation in context.relations.tolist()]
        rows = [curve.apply(row) for curve, row in zip(curves, log_odds, strict=True)]
        return Verdict(np.array(rows).reshape(score.shape), log_odds)

    def _curve(self, relation: int) -> Curve:
        assert self._calibration is not None
        number = torch.tensor(relation)
        side: Side = "head" if bool(is_inverse(number, len(self._relations))) else "tail"
        name = self._relations.names[int(base_relation(number, len(self._relations)))]
        return self._calibration.curve(name, side)
