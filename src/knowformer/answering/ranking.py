"""Rankings in ids: the best candidates of a question, and a cache of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from jaxtyping import Bool, Float, Int

from knowformer.answering.questions import Question
from knowformer.answering.results import NoiseSpread
from knowformer.errors import ConfigError

CACHED_CANDIDATES = 200_000  # about 100 MB


@dataclass(frozen=True)
class Options:
    """How questions are answered.

    Raises:
        ConfigError: a number is not positive.
    """

    k: int = 10
    new_only: bool = False
    samples: int = 1
    """Draws of the identity noise; more than one adds a spread to each answer."""
    typical: bool = False
    """Ask other heads of the relation as well, and say how the answers rank there."""
    among: tuple[int, ...] | None = None
    """Entities that may answer, by their ids, rising; None: all may."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"Expected a positive number of answers, got {self.k}.")
        if self.samples < 1:
            raise ConfigError(f"Expected a positive number of samples, got {self.samples}.")


@dataclass(frozen=True)
class Candidate:
    """An entity, or a relation when that was the question, by its id."""

    id: int
    score: float
    probability: float
    known: bool
    spread: NoiseSpread | None
    share: float | None = None
    typical_rank: int | None = None


@dataclass(frozen=True)
class Ranking:
    """The best candidates of a question, best first, and how many there were."""

    candidates: list[Candidate]
    num_candidates: int
    num_known: int


@dataclass(frozen=True)
class Draw:
    """The chosen candidates of one question under one sample of the noise."""

    scores: Float[np.ndarray, " K"]
    probabilities: Float[np.ndarray, " K"]
    in_top: Bool[np.ndarray, " K"]
    """Whether each is among the k best of this draw as well."""
    shares: Float[np.ndarray, " K"] | None = None
    """Of relations: the probability of each, given that one of them holds."""


def build_ranking(
    chosen: Sequence[int],
    draws: Sequence[Draw],
    known: Bool[np.ndarray, " K"],
    *,
    num_candidates: int,
    num_known: int,
    typical_ranks: Int[np.ndarray, " K"] | None = None,
) -> Ranking:
    """Returns the ranking of chosen candidates; the first draw gives their scores.

    Args:
        chosen: their ids, best first.
        draws: one or more; those of ``chosen`` in each.
        known: of each of them, whether it is a known fact.
        num_candidates: of the question in all.
        num_known: of these, known facts.
        typical_ranks: of each of them, where that was asked for.
    """
    first = draws[0]
    candidates = [
        Candidate(
            id=number,
            score=float(first.scores[place]),
            probability=float(first.probabilities[place]),
            known=bool(known[place]),
            spread=_spread(draws, place) if len(draws) > 1 else None,
            share=None if first.shares is None else float(first.shares[place]),
            typical_rank=None if typical_ranks is None else int(typical_ranks[place]),
        )
        for place, number in enumerate(chosen)
        if np.isfinite(first.scores[place])  # left out by new_only
    ]
    return Ranking(candidates, num_candidates, num_known)


def _spread(draws: Sequence[Draw], place: int) -> NoiseSpread:
    scores = np.array([draw.scores[place] for draw in draws])
    probabilities = np.array([draw.probabilities[place] for draw in draws])
    return NoiseSpread(
        samples=len(draws),
        score_mean=float(scores.mean()),
        score_deviation=float(scores.std(ddof=1)),
        probability_mean=float(probabilities.mean()),
        probability_deviation=float(probabilities.std(ddof=1)),
        top_k_share=float(np.mean([draw.in_top[place] for draw in draws])),
    )


class RankingCache:
    """Rankings of earlier questions, so that a repeated one costs nothing; several threads may."""

    def __init__(self, limit: int = CACHED_CANDIDATES) -> None:
        self._limit = limit
        self._lock = Lock()
        self._rankings: dict[tuple[Options, Question], Ranking] = {}
        self._num_candidates = 0

    def get(self, options: Options, questions: Iterable[Question]) -> dict[Question, Ranking]:
        """Returns the rankings that are there."""
        with self._lock:
            cached = {q: self._rankings.get((options, q)) for q in questions}
        return {question: ranking for question, ranking in cached.items() if ranking is not None}

    def add(self, options: Options, rankings: Mapping[Question, Ranking]) -> None:
        """Keeps rankings; all earlier ones go when there is no room for these."""
        size = sum(len(ranking.candidates) for ranking in rankings.values())
        if size > self._limit:
            return
        with self._lock:
            if self._num_candidates + size > self._limit:
                self._rankings.clear()
                self._num_candidates = 0
            self._rankings |= {(options, q): ranking for q, ranking in rankings.items()}
            self._num_candidates += size
