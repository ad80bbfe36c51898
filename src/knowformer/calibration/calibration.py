"""Calibration: what a score is worth as a probability; fitted by ``calibration.fit``.

    log-odds = a * score + b * competitors + c * none_seen + d * log(1 + num_seen) + e
               - log(num_candidates)

``calibration.features`` defines the terms. The last one is Bayes: a question misses as many facts
in a graph of many entities as in one of few, so before any score is seen, the chance of each falls
with their number. There is one set of coefficients and one curve (a line, or steps joined by lines)
for all relations. A relation and side that validation facts say something about moves the log-odds
of that curve by a line of its own. Only the score differs between the candidates of a question, and
everything rises with it, so a calibrated probability never changes their order.
"""

from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from knowformer.calibration.relation_choice import RelationChoice
from knowformer.graph.inverse import Side
from knowformer.scoring.link import LinkFunction

FORMAT_VERSION = 2  # 1 had a curve for some relations and sides, where there now are lines
ENOUGH_FACTS = 10  # of a relation and side: its log-odds are then known to about a third
# Their names in calibration.json, where "crowd" is the logmeanexp of competitors.
COEFFICIENTS = ("score", "crowd", "none_seen", "log_num_seen", "constant")

EVENT = (
    "The fact (h, r, t) is true, given a question (h, r, ?) or (?, r, t) whose given entity takes "
    "part in r, and a candidate that is no known answer; true means held out from the data set, "
    "all that the data set does not hold is false, and the graph lacks as large a share of its "
    "facts as the validation facts are."
)

TINY = 1e-12

CurveKind = Literal["line", "steps"]

# A calibration comes back out of a file: no number of it may turn probabilities into NaN.
Number = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class Curve(BaseModel):
    """Log-odds to probability, never falling."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: CurveKind
    """``line``: Platt scaling, a line in log-odds; ``steps``: isotonic regression."""
    slope: float = Field(default=1.0, ge=0.0, le=1e9)
    shift: Number = 0.0
    log_odds: list[Number] = []
    """Of ``steps``: where the probabilities below hold; between them, straight lines."""
    probabilities: list[float] = []

    @model_validator(mode="after")
    def _check_steps(self) -> "Curve":
        steps = self.kind == "steps"
        if steps and (not self.log_odds or len(self.log_odds) != len(self.probabilities)):
            raise ValueError("expected as many probabilities as log-odds, at least one")
        rising = np.all(np.diff(self.log_odds) > 0) and np.all(np.diff(self.probabilities) >= 0)
        inside = all(0.0 <= p <= 1.0 for p in self.probabilities)
        if steps and not (rising and inside):
            raise ValueError("expected steps that rise, from 0 to 1")
        return self

    def apply(self, log_odds: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Returns probabilities."""
        if self.kind == "steps":
            return np.interp(log_odds, self.log_odds, self.probabilities)
        return sigmoid(self.slope * log_odds + self.shift)


class Line(BaseModel):
    """How a relation and side moves the log-odds z of the pooled curve; it always rises.

    z + offset + tilt * (z - center)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    offset: Number
    tilt: float = Field(gt=-1.0, le=1e9)
    center: Number

    def apply(self, probabilities: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Returns the relation's probabilities, given the pooled ones."""
        z = log_odds_of(probabilities)
        return sigmoid(z + self.offset + self.tilt * (z - self.center))


class ProbabilityBasis(BaseModel):
    """What stands behind the probabilities of one relation and side."""

    model_config = ConfigDict(frozen=True)

    questions: Count
    """Of the calibration's sample."""
    facts: Count
    """Validation facts that were missing there."""

    @property
    def is_enough(self) -> bool:
        """Whether there were facts enough to notice that the relation differs from the rest."""
        return self.facts >= ENOUGH_FACTS


class FittedOn(BaseModel):
    """What a calibration was made from."""

    model_config = ConfigDict(frozen=True)

    facts: Count
    """Validation facts among the sampled questions, each asked in up to two directions."""
    questions: Count
    candidates: Count
    sampled_from: Count
    """Questions that the sample stands for."""
    test_facts_among_candidates: Count
    """How many; which they are is never looked at."""
    seed: int
    relations: dict[str, dict[Side, ProbabilityBasis]] | None = None
    """By the relation's name and the side that is asked for; None in runs of before they were
    counted."""


class Calibration(BaseModel):
    """Turns scores into probabilities of ``event``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: int = Field(default=FORMAT_VERSION, ge=1)
    event: str = EVENT
    link: LinkFunction = Field(
        validation_alias=AliasChoices("own", "link"), serialization_alias="own"
    )
    """The model's link function; ``own`` in calibration.json."""
    coefficients: dict[str, Number]
    pooled: Curve
    lines: dict[str, dict[Side, Line]] = {}
    """By the relation's name and the side that is asked for."""
    relations: dict[str, dict[Side, Curve]] = {}
    """Curves instead of the pooled one, in runs of before there were lines."""
    log_loss: dict[str, float]
    """Per validation candidate, each left out of the fit that it measures: by kind of fit."""
    fitted_on: FittedOn
    relation_choice: RelationChoice | None = None
    """How relations between two entities are compared; None in runs of before it was fitted."""
    weights_sha256: str = ""
    """Of the model that it belongs to."""

    @model_validator(mode="after")
    def _has_coefficients(self) -> "Calibration":
        if missing := set(COEFFICIENTS) - self.coefficients.keys():
            raise ValueError(f"expected the coefficients {', '.join(sorted(missing))}")
        return self

    def probabilities(
        self, log_odds: Float[np.ndarray, " N"], relation: str, side: Side
    ) -> Float[np.ndarray, " N"]:
        """Returns the probabilities of candidates for a relation and the side asked for."""
        values = self.relations.get(relation, {}).get(side, self.pooled).apply(log_odds)
        line = self.lines.get(relation, {}).get(side)
        return values if line is None else line.apply(values)

    def basis(self, relation: str, side: Side) -> ProbabilityBasis | None:
        """Returns what stands behind a relation's probabilities; None if it was not counted."""
        counted = self.fitted_on.relations
        if counted is None:
            return None
        return counted.get(relation, {}).get(side, ProbabilityBasis(questions=0, facts=0))

    def log_odds(
        self,
        score: Float[np.ndarray, "..."],
        competitors: Float[np.ndarray, "..."],
        num_seen: Int[np.ndarray, "..."],
        num_candidates: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "..."]:
        """Returns log-odds before the curve; these compare across queries, without ties."""
        columns = feature_columns(score, competitors, num_seen)
        log_odds = -np.log(num_candidates)
        # One column after the other: a matrix product's bits depend on how many rows it has.
        for number, name in enumerate(COEFFICIENTS):
            log_odds = log_odds + self.coefficients[name] * columns[..., number]
        return log_odds


def feature_columns(
    score: Float[np.ndarray, "..."],
    competitors: Float[np.ndarray, "..."],
    num_seen: Int[np.ndarray, "..."],
) -> Float[np.ndarray, "... 5"]:
    """Returns what the log-odds are a weighted sum of, one column per coefficient."""
    score, competitors, num_seen = np.broadcast_arrays(score, competitors, num_seen)
    none_seen = (num_seen == 0).astype(np.float64)
    constant = np.ones_like(competitors)
    return np.stack([score, competitors, none_seen, np.log1p(num_seen), constant], axis=-1)


def sigmoid(log_odds: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Returns 1 / (1 + exp(-x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -log_odds))


def log_odds_of(probabilities: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Returns log(p / (1 - p)), the inverse of ``sigmoid``, kept finite."""
    p = np.clip(probabilities, TINY, 1 - TINY)
    return np.log(p) - np.log1p(-p)
