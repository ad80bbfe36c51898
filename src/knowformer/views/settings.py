"""ViewSettings: which entities a query sees; and the same in whole numbers."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

MASS = 2**40  # stands for 1, the mass of PageRank
PARTS = 2**12  # alpha is a number of these
COARSEST = 2**31  # tolerance: times the edges of an entity it fits into 64 bits


class ViewSettings(BaseModel):
    """Settings of views. A view has the entities with the largest PageRank + weighted prior."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    size: int = Field(ge=1)
    """K, entities that a query sees at most; as many as the graph has: all of them."""
    alpha: float = Field(default=0.85, gt=0.0, lt=1.0)
    """Share of its PageRank mass that an entity passes on to its neighbours."""
    prior_weight: float = Field(default=0.3, ge=0.0, le=16.0)
    """beta, weight of the prior: the share of the query relation's facts with an entity as tail."""
    tolerance: float = Field(default=0.05, gt=0.0)
    """Mass per edge below which an entity passes nothing on, in multiples of 1 / size: the smaller,
    the nearer to exact PageRank, and the slower."""


class Rules(NamedTuple):
    """Settings in whole numbers: their sums do not depend on an order."""

    size: int
    mass: int
    alpha: int
    parts: int
    prior: int
    tolerance: int

    @classmethod
    def of(cls, settings: ViewSettings) -> "Rules":
        """Rounds the settings."""
        return cls(
            size=settings.size,
            mass=MASS,
            alpha=round(settings.alpha * PARTS),
            parts=PARTS,
            prior=round(settings.prior_weight * MASS),
            tolerance=max(1, min(COARSEST, round(settings.tolerance * MASS / settings.size))),
        )
