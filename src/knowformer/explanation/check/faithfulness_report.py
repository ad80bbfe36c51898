"""FaithfulnessReport: deletion and insertion curves of explanations of a test set.

Value objects: JSON, text and tables out. Names of fields are keys of the JSON.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from knowformer.explanation.explanation import EvidenceKind, verdict_on
from knowformer.tables import Cell, Column, TableView, Tabular

Mode = Literal["deletion", "insertion"]
Measure = Literal["log_odds", "score", "probability", "reciprocal_rank"]
KINDS: tuple[EvidenceKind, ...] = ("paths", "prototypes", "attended")
MODES: tuple[Mode, ...] = ("deletion", "insertion")
MEASURES: tuple[Measure, ...] = ("log_odds", "score", "probability", "reciprocal_rank")
TITLES: dict[EvidenceKind, str] = {
    "paths": "The facts of {} paths",
    "prototypes": "the {} prototypes",
    "attended": "the {} most attended entities",
}


class CurvePoint(BaseModel):
    """Mean effect of the first pieces of evidence; a bootstrap interval of the difference."""

    model_config = ConfigDict(frozen=True)

    size: int
    """Paths, or entities; where a prediction has fewer, all that it has."""
    pieces: float
    """Facts or entities removed or inserted, on average."""
    named: float
    """Lost without the evidence (deletion), or gained by it alone (insertion)."""
    random: float
    """The same with random evidence."""
    difference: float
    low: float
    high: float


class FaithfulnessCurve(BaseModel):
    """Deletion or insertion of one kind of evidence, in one measure."""

    model_config = ConfigDict(frozen=True)

    evidence: EvidenceKind
    mode: Mode
    measure: Measure
    num_predictions: int
    """Predictions for which there was such evidence."""
    points: list[CurvePoint]


class FaithfulnessReport(Tabular, BaseModel):
    """How faithful explanations are on a test set."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    num_predictions: int
    """Test facts, each asked for its head or its tail; the true answer is the one explained."""
    num_draws: int
    confidence: float
    mean_reciprocal_rank: float
    curves: list[FaithfulnessCurve]
    seconds: float
    seconds_per_explanation: float
    """To find the evidence, on average, without checking it."""
    command: str | None
    """What the user typed; None when the report was made from Python."""

    def curve(
        self, evidence: EvidenceKind, mode: Mode, measure: Measure
    ) -> FaithfulnessCurve | None:
        """Returns one curve, if any prediction had such evidence."""
        wanted = (evidence, mode, measure)
        return next((c for c in self.curves if (c.evidence, c.mode, c.measure) == wanted), None)

    def verdicts(self) -> list[str]:
        """Returns a sentence for each kind of evidence: how far to trust it, on average."""
        sentences: list[str] = []
        for kind in KINDS:
            curve = self.curve(kind, "deletion", "log_odds")
            if curve is not None:
                most = curve.points[-1]
                verdict = verdict_on(most.named, most.random, beats_random=most.low > 0)
                sentences.append(f"{TITLES[kind].format(most.size)} {verdict}")
        return sentences

    def table(self) -> TableView:
        """Returns every point of every curve."""
        names = ("named", "random", "difference", "low", "high")
        columns = [
            *(Column(name) for name in ("evidence", "mode", "measure")),
            Column("size", is_number=True),
            Column("pieces", decimals=1, is_number=True),
            *(Column(name, decimals=4, is_number=True) for name in names),
        ]
        rows: list[list[Cell]] = [
            [c.evidence, c.mode, c.measure, p.size, p.pieces, *(getattr(p, n) for n in names)]
            for c in self.curves
            for p in c.points
        ]
        return TableView(
            title=f"{self.dataset}: faithfulness over {self.num_predictions:,} predictions",
            columns=columns,
            rows=rows,
            caption="; ".join(self.verdicts()),
        )
