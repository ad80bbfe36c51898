"""RelationChoice: which relation links two entities, if one does.

    P(r | h, t)  ~  exp(sum of coefficients * columns of r)

a conditional logit over the relations. The columns are logarithms (``relation_evidence``), so the
formula is a product of powers: the share of r in the facts of h and of t over its share in all
facts, which is what their kinds say, times what the model says in either direction.
"""

from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float
from pydantic import BaseModel, ConfigDict, Field, model_validator

COEFFICIENTS = ("all_facts", "head_facts", "tail_facts", "tail_odds", "head_odds")
KINDS = COEFFICIENTS[:3]
# Naive Bayes for the kinds; the model's two directions say the same thing, so each counts half.
DEFAULTS = (-1.0, 1.0, 1.0, 0.5, 0.5)


class RelationChoice(BaseModel):
    """Weighs the evidence for relations; fitted by ``relation_fit``, or as good as a guess."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    coefficients: dict[str, Annotated[float, Field(ge=-1e9, le=1e9)]] = dict(
        zip(COEFFICIENTS, DEFAULTS, strict=True)
    )
    facts: int = Field(default=0, ge=0)
    """Validation facts that it was fitted to; none: the coefficients are those of a guess."""

    @model_validator(mode="after")
    def _has_coefficients(self) -> "RelationChoice":
        if missing := set(COEFFICIENTS) - self.coefficients.keys():
            raise ValueError(f"expected the coefficients {', '.join(sorted(missing))}")
        return self

    def scores(self, columns: Float[np.ndarray, "... C"]) -> Float[np.ndarray, "..."]:
        """Returns a number for each relation that orders those of one pair."""
        scores = np.zeros(columns.shape[:-1])
        # One column after the other: a matrix product's bits depend on how many rows it has.
        for number, name in enumerate(COEFFICIENTS):
            scores = scores + self.coefficients[name] * columns[..., number]
        return scores

    def of_kinds(self, columns: Float[np.ndarray, "... C"]) -> Float[np.ndarray, "..."]:
        """Returns what the kinds of the two entities say alone, before the model is asked."""
        told = np.isin(COEFFICIENTS, KINDS)
        return self.scores(np.where(told, columns, 0.0))


def relation_shares(
    scores: Float[np.ndarray, "Q A"], allowed: Bool[np.ndarray, "Q A"]
) -> Float[np.ndarray, "Q A"]:
    """Returns the probability of each relation, given that one of those allowed holds."""
    masked = np.where(allowed, scores, -np.inf)
    top = masked.max(axis=1, keepdims=True, initial=-1e300)
    weights = np.exp(masked - top)
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
