"""Faithfulness over a test set: deletion and insertion curves, with bootstrap intervals.

Deletion removes the first pieces of evidence, then more, and says what the answer loses. Insertion
starts from no facts at all, or from entities of which none attends to another, gives the first
pieces back, and says what the answer gains. Beside each stands random evidence of the same size.
"""

import time
from collections import defaultdict
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from knowformer.evaluation.bootstrap import bootstrap_interval
from knowformer.explanation.check.faithfulness import Ask, RandomEvidence, Removal, standing
from knowformer.explanation.explanation import EvidenceKind, Standing, verdict_on
from knowformer.explanation.find.evidence import Evidence, EvidenceFinder
from knowformer.explanation.find.tracing import Prediction
from knowformer.seeding import derive_seed
from knowformer.tables import Cell, Column, TableView, Tabular

PATH_COUNTS = (1, 2, 3, 5)
ENTITY_COUNTS = (1, 2, 5, 10)

Mode = Literal["deletion", "insertion"]
Measure = Literal["log_odds", "score", "probability", "reciprocal_rank"]
MEASURES: tuple[Measure, ...] = ("log_odds", "score", "probability", "reciprocal_rank")
TITLES: dict[EvidenceKind, str] = {
    "paths": "The facts of {} paths",
    "prototypes": "the {} prototypes",
    "attended": "the {} most attended entities",
}
KINDS: tuple[EvidenceKind, ...] = ("paths", "prototypes", "attended")
MODES: tuple[Mode, ...] = ("deletion", "insertion")

Floats = npt.NDArray[np.float64]


class CurvePoint(BaseModel):
    """What the first pieces of evidence are worth, on average; the interval is a bootstrap's."""

    model_config = ConfigDict(frozen=True)

    size: int
    """Paths, or entities; where a prediction has fewer, all that it has."""
    pieces: float
    """Facts or entities removed or inserted, on average."""
    named: float
    random: float
    difference: float
    low: float
    high: float


class Curve(BaseModel):
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
    """Test facts asked in one of both directions; the answer explained is the fact's own."""
    num_draws: int
    confidence: float
    mean_reciprocal_rank: float
    curves: list[Curve]
    seconds: float
    seconds_per_explanation: float
    """To find the evidence, on average, without checking it."""
    command: str | None
    """What the user typed; None when the report was made from Python."""

    def curve(self, evidence: EvidenceKind, mode: Mode, measure: Measure) -> Curve | None:
        """Returns one curve, if any prediction had such evidence."""
        wanted = (evidence, mode, measure)
        return next((c for c in self.curves if (c.evidence, c.mode, c.measure) == wanted), None)

    def verdicts(self) -> list[str]:
        """Returns a sentence for each kind of evidence: how far to trust it, on average."""
        said: list[str] = []
        for kind in KINDS:
            curve = self.curve(kind, "deletion", "log_odds")
            if curve is not None:
                most = curve.points[-1]
                verdict = verdict_on(most.named, most.random, beats_random=most.low > 0)
                said.append(f"{TITLES[kind].format(most.size)} {verdict}")
        return said

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


class _Row(NamedTuple):
    """One prediction: how many pieces, and what they are worth in each measure."""

    pieces: int
    named: Floats
    at_random: Floats


class _Case(NamedTuple):
    """One kind of evidence for one prediction."""

    kind: EvidenceKind
    by_size: dict[int, list[int]]  # the first pieces, and more of them
    without: Ask
    alone: Ask
    others: RandomEvidence


class CurveCollector:
    """Takes predictions one by one; keeps what named and random evidence is worth to each."""

    def __init__(self, finder: EvidenceFinder, *, num_draws: int, seed: int) -> None:
        self._finder = finder
        self._num_draws = num_draws
        self._seed = seed
        self._rows: defaultdict[tuple[EvidenceKind, Mode, int], list[_Row]] = defaultdict(list)
        self.ranks: list[float] = []
        self.seconds_finding = 0.0

    def add(self, prediction: Prediction) -> None:
        """Finds the evidence for a prediction; deletes and inserts it, and random evidence too."""
        started = time.perf_counter()
        evidence = self._finder.find(
            prediction, num_paths=max(PATH_COUNTS), num_prototypes=max(ENTITY_COUNTS)
        )
        self.seconds_finding += time.perf_counter() - started
        before = standing(evidence.trace.scores, prediction)
        self.ranks.append(before.rank)
        question = (prediction.head, prediction.relation, prediction.answer)
        random = np.random.default_rng(derive_seed(self._seed, "curves", *question))
        for case in _cases(self._finder, prediction, evidence):
            if case.by_size[1]:
                self._add_case(case, _measures(before), random)

    def _add_case(self, case: _Case, before: Floats, random: np.random.Generator) -> None:
        most = case.by_size[max(case.by_size)]
        draws = [case.others.draw(most, random) for _ in range(self._num_draws)]
        nothing = _measures(case.alone([]))

        # Where a prediction has few paths, the first three are the first five.
        @cache
        def lost(pieces: tuple[int, ...]) -> Floats:
            return before - _measures(case.without(pieces))

        @cache
        def gained(pieces: tuple[int, ...]) -> Floats:
            return _measures(case.alone(pieces)) - nothing

        for mode, worth_of in zip(MODES, (lost, gained), strict=True):
            for size, named in case.by_size.items():
                at_random = [worth_of(tuple(draw[: len(named)])) for draw in draws]
                row = _Row(len(named), worth_of(tuple(named)), np.mean(at_random, axis=0))
                self._rows[case.kind, mode, size].append(row)

    def curves(self) -> list[Curve]:
        """Returns all curves of the predictions so far."""
        found: list[Curve] = []
        for kind in KINDS:
            for mode in MODES:
                sizes = PATH_COUNTS if kind == "paths" else ENTITY_COUNTS
                by_size = {size: self._rows[kind, mode, size] for size in sizes}
                if by_size[1]:
                    found += [
                        self._curve(kind, mode, number, by_size) for number in range(len(MEASURES))
                    ]
        return found

    def _curve(
        self, kind: EvidenceKind, mode: Mode, number: int, by_size: dict[int, list[_Row]]
    ) -> Curve:
        points: list[CurvePoint] = []
        for size, rows in by_size.items():
            named = np.array([row.named[number] for row in rows])
            at_random = np.array([row.at_random[number] for row in rows])
            low, high = bootstrap_interval(named - at_random, seed=self._seed)
            points.append(
                CurvePoint(
                    size=size,
                    pieces=float(np.mean([row.pieces for row in rows])),
                    named=float(named.mean()),
                    random=float(at_random.mean()),
                    difference=float((named - at_random).mean()),
                    low=low,
                    high=high,
                )
            )
        return Curve(
            evidence=kind,
            mode=mode,
            measure=MEASURES[number],
            num_predictions=len(by_size[1]),
            points=points,
        )


def _cases(finder: EvidenceFinder, prediction: Prediction, evidence: Evidence) -> list[_Case]:
    removal = Removal(finder.tracer, evidence.graph, prediction)
    facts = RandomEvidence.of_facts(evidence.graph, prediction)
    entities = RandomEvidence.of_entities(evidence.graph, prediction)
    by_paths = {size: evidence.facts(size) for size in PATH_COUNTS}
    cases = [_Case("paths", by_paths, removal.without_facts, removal.with_facts_alone, facts)]
    of_attention: list[tuple[EvidenceKind, list[int]]] = [
        ("prototypes", evidence.prototypes),
        ("attended", evidence.attended),
    ]
    for kind, named in of_attention:
        by_size = {size: named[:size] for size in ENTITY_COUNTS}
        ask = (removal.without_attending, removal.attending_alone)
        cases.append(_Case(kind, by_size, *ask, entities))
    return cases


def _measures(found: Standing) -> Floats:
    return np.array([found.log_odds, found.score, found.probability, 1 / found.rank])
