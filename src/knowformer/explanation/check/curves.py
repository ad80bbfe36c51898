"""Deletion and insertion curves over many predictions, with bootstrap intervals.

Deletion removes the first pieces of evidence, then more, and measures what the answer loses.
Insertion starts from no facts at all, or from entities of which none attends to another, gives the
first pieces back, and measures what the answer gains. Both are done with random evidence as well.
"""

import time
from collections import defaultdict
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from knowformer.evaluation.bootstrap import bootstrap_interval
from knowformer.explanation.check.faithfulness import RandomEvidence, Removal, score_margin
from knowformer.explanation.check.faithfulness_report import (
    KINDS,
    MEASURES,
    MODES,
    CurvePoint,
    FaithfulnessCurve,
    Mode,
)
from knowformer.explanation.explanation import EvidenceKind, ScoreMargin
from knowformer.explanation.find.evidence import AnswerEvidence, EvidenceFinder
from knowformer.explanation.find.prediction import Prediction
from knowformer.seeding import derive_seed

PATH_COUNTS = (1, 2, 3, 5)
ENTITY_COUNTS = (1, 2, 5, 10)

Floats = npt.NDArray[np.float64]


class _Effect(NamedTuple):
    """What evidence did for one prediction, in each of ``MEASURES``."""

    num_pieces: int
    named: Floats
    at_random: Floats


class CurveCollector:
    """Takes predictions one by one; keeps the effect of named and random evidence on each."""

    def __init__(self, finder: EvidenceFinder, *, num_draws: int, seed: int) -> None:
        self._finder = finder
        self._num_draws = num_draws
        self._seed = seed
        self._effects: defaultdict[tuple[EvidenceKind, Mode, int], list[_Effect]]
        self._effects = defaultdict(list)
        self.ranks: list[float] = []
        self.seconds_finding = 0.0

    def add(self, prediction: Prediction) -> None:
        """Finds the evidence for a prediction; deletes and inserts it, and random evidence too."""
        started = time.perf_counter()
        evidence = self._finder.find(
            prediction, num_paths=max(PATH_COUNTS), num_prototypes=max(ENTITY_COUNTS)
        )
        self.seconds_finding += time.perf_counter() - started
        before = score_margin(evidence.trace.scores, prediction)
        self.ranks.append(before.rank)
        query = (prediction.head, prediction.relation, prediction.answer)
        random = np.random.default_rng(derive_seed(self._seed, "curves", *query))
        for kind in KINDS:
            if evidence.pieces(kind):
                self._add_kind(kind, evidence, _measures(before), random)

    def _add_kind(
        self,
        kind: EvidenceKind,
        evidence: AnswerEvidence,
        before: Floats,
        random: np.random.Generator,
    ) -> None:
        removal = Removal(self._finder, evidence)
        others = RandomEvidence.of(kind, evidence.graph, evidence.placed)
        by_count = {count: evidence.pieces(kind, count) for count in _counts(kind)}
        draws = [others.draw(by_count[max(by_count)], random) for _ in range(self._num_draws)]
        nothing = _measures(removal.alone(kind, []))

        # Where a prediction has few paths, the first three are the first five.
        @cache
        def lost(pieces: tuple[int, ...]) -> Floats:
            return before - _measures(removal.without(kind, pieces))

        @cache
        def gained(pieces: tuple[int, ...]) -> Floats:
            return _measures(removal.alone(kind, pieces)) - nothing

        for mode, effect_of in zip(MODES, (lost, gained), strict=True):
            for count, named in by_count.items():
                at_random = [effect_of(tuple(draw[: len(named)])) for draw in draws]
                effect = _Effect(len(named), effect_of(tuple(named)), np.mean(at_random, axis=0))
                self._effects[kind, mode, count].append(effect)

    def curves(self) -> list[FaithfulnessCurve]:
        """Returns all curves of the predictions so far."""
        return [
            self._curve(kind, mode, measure)
            for kind in KINDS
            for mode in MODES
            if self._effects[kind, mode, 1]
            for measure in range(len(MEASURES))
        ]

    def _curve(self, kind: EvidenceKind, mode: Mode, measure: int) -> FaithfulnessCurve:
        return FaithfulnessCurve(
            evidence=kind,
            mode=mode,
            measure=MEASURES[measure],
            num_predictions=len(self._effects[kind, mode, 1]),
            points=[
                self._point(count, self._effects[kind, mode, count], measure)
                for count in _counts(kind)
            ],
        )

    def _point(self, count: int, effects: list[_Effect], measure: int) -> CurvePoint:
        named = np.array([effect.named[measure] for effect in effects])
        at_random = np.array([effect.at_random[measure] for effect in effects])
        low, high = bootstrap_interval(named - at_random, seed=self._seed)
        return CurvePoint(
            size=count,
            pieces=float(np.mean([effect.num_pieces for effect in effects])),
            named=float(named.mean()),
            random=float(at_random.mean()),
            difference=float((named - at_random).mean()),
            low=low,
            high=high,
        )


def _counts(kind: EvidenceKind) -> tuple[int, ...]:
    return PATH_COUNTS if kind == "paths" else ENTITY_COUNTS


def _measures(margin: ScoreMargin) -> Floats:
    """Returns a margin in the order of ``MEASURES``."""
    return np.array([margin.log_odds, margin.score, margin.probability, 1 / margin.rank])
