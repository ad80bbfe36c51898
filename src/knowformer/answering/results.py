"""What an answer consists of: Answer, Answers, MissingFacts; each prints as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from knowformer.tables import Cell, Column, TableView, Tabular, to_frame

if TYPE_CHECKING:
    import pandas

AskedFor = Literal["head", "relation", "tail"]
ProbabilityKind = Literal["calibrated", "model"]

CAPTIONS: dict[ProbabilityKind, str] = {
    "calibrated": "probabilities are calibrated on validation facts",
    "model": "probabilities are the model's own, not calibrated",
}


@dataclass(frozen=True)
class Spread:
    """The same answer under several draws of the identity noise; the first is the usual one."""

    samples: int
    score_mean: float
    score_deviation: float
    probability_mean: float
    probability_deviation: float
    top_k_share: float
    """Share of the draws in which the answer is among the k best."""


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
    spread: Spread | None = None


@dataclass(frozen=True)
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
        spread = self.answers[0].spread if self.answers else None
        columns = [
            Column("rank", is_number=True),
            Column(self.asks_for),
            *([Column("label")] if labelled else []),
            Column("probability", is_number=True),
            Column("score", decimals=2, is_number=True),
            Column("known fact", words=("new", "yes")),
            *(SPREAD_COLUMNS if spread else []),
        ]
        rows: list[list[Cell]] = []
        for a in self.answers:
            start: list[Cell] = [a.rank, a.name, *([a.label] if labelled else [])]
            rows.append([*start, a.probability, a.score, a.known, *_spread_cells(a.spread)])
        caption = (
            f"{self.num_candidates:,} candidates, {self.num_known:,} of them known facts; "
            f"{CAPTIONS[self.probability_kind]}"
        )
        if spread:
            caption += f"; sd prob and top k: over {spread.samples} draws of the noise"
        return TableView(self.shown_as or self.question(), columns, rows, caption)


SPREAD_COLUMNS = [
    Column("sd prob", is_number=True),
    Column("top k", is_number=True),
    Column("mean prob", is_shown=False),
    Column("mean score", is_shown=False),
    Column("sd score", is_shown=False),
]


def _spread_cells(spread: Spread | None) -> list[Cell]:
    if spread is None:
        return []
    means = (spread.probability_mean, spread.score_mean)
    return [spread.probability_deviation, spread.top_k_share, *means, spread.score_deviation]


class AnswerStream:
    """Answers to many questions, made while they are iterated over, in the questions' order."""

    def __init__(self, answers: Iterator[Answers]) -> None:
        self._answers = answers

    def __iter__(self) -> Iterator[Answers]:
        return self._answers

    def to_pandas(self) -> "pandas.DataFrame":
        """Answers all that is left and returns one row per answer."""
        columns = ["question", "head", "relation", "tail", "asks_for", "rank", "score"]
        rows: list[Sequence[Cell]] = [
            (number, h, r, t, some.asks_for, a.rank, a.score, a.probability, a.known)
            for number, some in enumerate(self)
            for h, r, t, a in some.facts()
        ]
        return to_frame([*columns, "probability", "known"], rows)

    def _repr_html_(self) -> str:
        return (
            "<p>Answers to many questions: iterate over them, or call <code>.to_pandas()</code></p>"
        )


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


@dataclass(frozen=True)
class MissingFacts(Tabular):
    """The most probable new facts of a relation, best first."""

    relation: str
    facts: list[MissingFact]
    num_questions: int
    num_candidates: int
    probability_kind: ProbabilityKind

    def table(self) -> TableView:
        """Returns the facts, most probable first."""
        labelled = any(fact.head_label or fact.tail_label for fact in self.facts)
        names = ["rank", "head", "relation", "tail", "probability", "score"]
        columns = [
            Column(n, decimals=2 if n == "score" else 3, is_number=n in {"rank", *names[4:]})
            for n in names
        ]
        columns += [Column("head label"), Column("tail label")] if labelled else []
        rows: list[list[Cell]] = [
            [f.rank, f.head, f.relation, f.tail, f.probability, f.score]
            + ([f.head_label, f.tail_label] if labelled else [])
            for f in self.facts
        ]
        caption = (
            f"{self.num_questions:,} questions, {self.num_candidates:,} candidates that are no "
            f"known facts; {CAPTIONS[self.probability_kind]}"
        )
        return TableView(f"new facts of {self.relation}", columns, rows, caption)
