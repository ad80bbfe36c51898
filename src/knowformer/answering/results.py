"""What an answer consists of: Answer, Answers, MissingFacts; each prints as a table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from knowformer.calibration.calibration import ProbabilityBasis
from knowformer.calibration.calibrator import ProbabilityKind
from knowformer.tables import Cell, Column, TableView, Tabular, to_frame

if TYPE_CHECKING:
    import pandas

AskedFor = Literal["head", "relation", "tail"]

CAPTIONS: dict[ProbabilityKind, str] = {
    "calibrated": "probabilities are calibrated on validation facts",
    "model": "probabilities are the model's own, not calibrated",
}


def describe_probabilities(kind: ProbabilityKind, basis: ProbabilityBasis | None) -> str:
    """Returns what probabilities are, and what stands behind them for the relation asked."""
    if basis is None:
        return CAPTIONS[kind]
    if basis.is_enough:
        return f"{CAPTIONS[kind]}, {basis.facts:,} of them of this relation and side"
    return (
        f"{CAPTIONS[kind]}, {basis.facts or 'none'} of them of this relation and side: too little "
        "to tell how well they hold here"
    )


@dataclass(frozen=True)
class NoiseSpread:
    """The same answer under several draws of the identity noise; the first is the usual one."""

    samples: int
    score_mean: float
    score_deviation: float
    probability_mean: float
    probability_deviation: float
    top_k_share: float
    """Fraction of the draws in which the answer is among the k best."""


@dataclass(frozen=True)
class Answer:
    """One candidate: an entity, or a relation when that was the question."""

    name: str
    rank: int
    score: float
    probability: float
    known: bool
    label: str | None = None
    """Its readable name, where there is one."""
    spread: NoiseSpread | None = None
    share: float | None = None
    """Of a relation: the probability that it is this one, given that one holds."""
    typical_rank: int | None = None
    """The median rank of this entity for other heads (or tails) of the relation, if asked for."""


@dataclass(frozen=True, repr=False)
class Answers(Tabular):
    """The best candidates for a question, best first."""

    head: str | None
    relation: str | None
    tail: str | None
    asks_for: AskedFor
    answers: list[Answer]
    num_candidates: int
    num_known: int
    probability_kind: ProbabilityKind = "model"
    shown_as: str | None = None
    """The question in readable names, where there are any."""
    probability_basis: ProbabilityBasis | None = None
    """What stands behind the probabilities of this relation and side; None where a relation is
    asked for, and where it was not counted."""

    def question(self) -> str:
        """Returns the question as it is written in the literature."""
        return f"({self.head or '?'}, {self.relation or '?'}, {self.tail or '?'})"

    def facts(self) -> Iterator[tuple[str, str, str, Answer]]:
        """Yields each answer with the fact that it makes: head, relation, tail."""
        for answer in self.answers:
            yield (
                answer.name if self.head is None else self.head,
                answer.name if self.relation is None else self.relation,
                answer.name if self.tail is None else self.tail,
                answer,
            )

    def table(self) -> TableView:
        """Returns the answers, best first."""
        labelled = any(answer.label for answer in self.answers)
        typical = any(answer.typical_rank is not None for answer in self.answers)
        spread = self.answers[0].spread if self.answers else None
        of_relations = self.asks_for == "relation"
        columns = [
            Column("rank", is_number=True),
            *([Column("typical rank", is_number=True)] if typical else []),
            Column(self.asks_for, is_shown=not self._readable_alone()),
            *([Column("label")] if labelled else []),
            *([Column("share", is_number=True, is_probability=True)] if of_relations else []),
            Column("probability", is_number=True, is_probability=True),
            Column("score", decimals=2, is_number=True, is_shown=not of_relations),
            Column("known fact", words=("new", "yes")),
            *(SPREAD_COLUMNS if spread else []),
        ]
        rows: list[list[Cell]] = [
            [
                *(a.rank, *([a.typical_rank] if typical else [])),
                *(a.name, *([a.label or a.name] if labelled else [])),
                *([a.share] if of_relations else []),
                *(a.probability, a.score, a.known, *_spread_cells(a.spread)),
            ]
            for a in self.answers
        ]
        return TableView(self.shown_as or self.question(), columns, rows, self._caption())

    def _readable_alone(self) -> bool:
        """Whether readable names tell the answers apart, so that people need no ids."""
        shown = [answer.label or answer.name for answer in self.answers]
        return any(answer.label for answer in self.answers) and len(set(shown)) == len(shown)

    def _caption(self) -> str:
        notes = [f"{self.num_candidates:,} candidates, {self.num_known:,} of them known facts"]
        if self.asks_for == "relation":
            notes.append("share: of the relations, if one of them holds between the two")
        notes.append(describe_probabilities(self.probability_kind, self.probability_basis))
        first = self.answers[0] if self.answers else None
        if first and first.typical_rank is not None:
            other = "head" if self.asks_for == "tail" else "tail"
            notes.append(
                f"typical rank: that of the same answer for other {other}s of the relation; where "
                f"it is as good, the answer says little about this {other}"
            )
        if first and first.spread:
            notes.append(
                f"asked {first.spread.samples} times with different random noise: sd prob is the "
                "standard deviation of the probability, top k how often it was among the k best"
            )
        return "; ".join(notes)


SPREAD_COLUMNS = [
    Column("sd prob", is_number=True),
    Column("top k", is_number=True),
    Column("mean prob", is_shown=False),
    Column("mean score", is_shown=False),
    Column("sd score", is_shown=False),
]


def _spread_cells(spread: NoiseSpread | None) -> list[Cell]:
    if spread is None:
        return []
    means = (spread.probability_mean, spread.score_mean)
    return [spread.probability_deviation, spread.top_k_share, *means, spread.score_deviation]


class AnswerStream:
    """Answers to many questions, made while they are iterated over, in the questions' order.

    It may be iterated over again if the questions may be: those of a list, not of a generator.
    """

    def __init__(self, answer: Callable[[], Iterator[Answers]]) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[Answers]:
        return self._answer()

    def to_pandas(self) -> "pandas.DataFrame":
        """Answers all questions and returns one row per answer."""
        columns = ["question", "head", "relation", "tail", "asks_for", "rank", "score"]
        rows: list[Sequence[Cell]] = [
            (number, h, r, t, some.asks_for, a.rank, a.score, a.probability, a.known)
            for number, some in enumerate(self)
            for h, r, t, a in some.facts()
        ]
        return to_frame([*columns, "probability", "known"], rows)

    def __repr__(self) -> str:
        return "Answers to many questions: iterate over them, or call .to_pandas()"


@dataclass(frozen=True)
class MissingFact:
    """A fact that the graph does not hold."""

    head: str
    relation: str
    tail: str
    rank: int
    score: float
    probability: float
    head_label: str | None = None
    tail_label: str | None = None


@dataclass(frozen=True, repr=False)
class MissingFacts(Tabular):
    """The most probable new facts of a relation, best first."""

    relation: str
    facts: list[MissingFact]
    num_questions: int
    num_candidates: int
    probability_kind: ProbabilityKind
    probability_basis: ProbabilityBasis | None = None
    """What stands behind the probabilities of this relation and side, if it was counted."""

    def table(self) -> TableView:
        """Returns the facts, most probable first."""
        # The relation is in the title, and a readable name stands for its id where people read.
        heads, tails = (
            any(getattr(fact, f"{side}_label") for fact in self.facts) for side in ("head", "tail")
        )
        columns = [
            Column("rank", is_number=True),
            Column("head", is_shown=not heads),
            *([Column("head label")] if heads else []),
            Column("relation", is_shown=False),
            Column("tail", is_shown=not tails),
            *([Column("tail label")] if tails else []),
            Column("probability", is_number=True, is_probability=True),
            Column("score", decimals=2, is_number=True),
        ]
        rows: list[list[Cell]] = [
            [
                *(f.rank, f.head, *([f.head_label or f.head] if heads else [])),
                *(f.relation, f.tail, *([f.tail_label or f.tail] if tails else [])),
                *(f.probability, f.score),
            ]
            for f in self.facts
        ]
        caption = (
            f"{self.num_questions:,} questions, {self.num_candidates:,} candidates that are no "
            f"known facts; {describe_probabilities(self.probability_kind, self.probability_basis)}"
        )
        return TableView(f"new facts of {self.relation}", columns, rows, caption)
