"""Calibrator: scores to probabilities, calibrated where a calibration exists."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.calibration.calibration import Calibration, ProbabilityBasis
from knowformer.calibration.features import QueryFeatures
from knowformer.calibration.relation_choice import RelationChoice
from knowformer.graph.inverse import Side, asked_relation
from knowformer.graph.vocabulary import Vocabulary
from knowformer.scoring.link import LinkFunction, log_probabilities

ProbabilityKind = Literal["calibrated", "model"]

LOWEST = -1e30  # instead of -inf, which times zero is not a number


@dataclass(frozen=True)
class Probabilities:
    """Probabilities, and the log-odds that order those that are equal."""

    values: Float[np.ndarray, "*shape"]
    log_odds: Float[np.ndarray, "*shape"]

    def __getitem__(self, at: Any) -> "Probabilities":
        return Probabilities(self.values[at], self.log_odds[at])

    def order(self) -> Int[np.ndarray, " N"]:
        """Returns positions from most to least probable."""
        return np.lexsort((-self.log_odds, -self.values))


class Calibrator:
    """Turns the scores of one model into probabilities."""

    def __init__(
        self, calibration: Calibration | None, link: LinkFunction, relations: Vocabulary
    ) -> None:
        """Binds a calibration to the relations of a graph.

        Args:
            calibration: the model's; None leaves its probabilities as its link function gives them.
            link: the model's link function.
            relations: names of the relation ids that queries come with.
        """
        self._calibration = calibration
        self._link: LinkFunction = link
        self._relations = relations

    @property
    def kind(self) -> ProbabilityKind:
        """Returns what the probabilities are."""
        return "model" if self._calibration is None else "calibrated"

    @property
    def relation_choice(self) -> RelationChoice:
        """How relations between two entities are compared; with defaults where none was fitted."""
        fitted = self._calibration and self._calibration.relation_choice
        return fitted or RelationChoice()

    def basis(self, relation: str, side: Side) -> ProbabilityBasis | None:
        """Returns what stands behind the probabilities of a relation, if that was counted."""
        return self._calibration and self._calibration.basis(relation, side)

    @property
    def fingerprint(self) -> str:
        """Returns a text that is another one for a calibrator with other probabilities."""
        if self._calibration is None:
            return self._link
        return self._calibration.model_dump_json(by_alias=True)

    def probabilities(self, scores: Float[Tensor, "B K"], features: QueryFeatures) -> Probabilities:
        """Returns probabilities of some candidates of each query; a score of -inf gets none."""
        score = np.maximum(scores.double().numpy(), LOWEST)
        if self._calibration is None:
            logs = log_probabilities(score, features.log_total[:, None], self._link)
            return Probabilities(np.exp(logs), logs)
        log_odds = self._calibration.log_odds(
            score,
            features.competitors[:, None],
            features.num_seen[:, None],
            features.num_candidates[:, None],
        )
        relations: list[int] = features.relations.tolist()
        asked = [asked_relation(relation, self._relations) for relation in relations]
        values = [
            self._calibration.probabilities(of_query, name, side)
            for of_query, (name, side) in zip(log_odds, asked, strict=True)
        ]
        return Probabilities(np.array(values).reshape(score.shape), log_odds)
