"""WhatIf: the answers to a question before and after a change of facts, and what moved."""

from dataclasses import dataclass, replace

from knowformer.answering.results import Answer, Answers
from knowformer.tables import Cell, Column, TableView, Tabular

LOOKED_AT = 1000  # best answers before and after; what stands lower has no rank here


@dataclass(frozen=True)
class Move:
    """A candidate that is among the best before the change, or after it."""

    name: str
    rank_before: int | None
    """None: not among the best 1,000, left out as known, or not there."""
    rank_after: int | None
    probability_before: float | None
    probability_after: float | None
    label: str | None = None


@dataclass(frozen=True, repr=False)
class WhatIf(Tabular):
    """Answers before and after a change that nobody stored."""

    before: Answers
    after: Answers
    moves: list[Move]
    """Of every answer before or after: first those after, best first."""

    def table(self) -> TableView:
        """Returns the moves."""
        columns = [
            Column(self.before.asks_for),
            Column("rank before", is_number=True),
            Column("rank after", is_number=True),
            Column("probability before", is_number=True, is_probability=True),
            Column("probability after", is_number=True, is_probability=True),
        ]
        rows: list[list[Cell]] = [
            [
                *(move.label or move.name, move.rank_before, move.rank_after),
                *(move.probability_before, move.probability_after),
            ]
            for move in self.moves
        ]
        return TableView(self.before.shown_as or self.before.question(), columns, rows)


def compare_answers(before: Answers, after: Answers, *, k: int) -> WhatIf:
    """Returns the k best answers before and after, and how each of them moved.

    Args:
        before: as many answers as were looked at, k or more.
        after: the same after the change.
        k: how many are kept.
    """
    old, new = ({answer.name: answer for answer in some.answers} for some in (before, after))
    best = [*after.answers[:k], *before.answers[:k]]
    return WhatIf(
        replace(before, answers=before.answers[:k]),
        replace(after, answers=after.answers[:k]),
        [_move(name, old.get(name), new.get(name)) for name in dict.fromkeys(a.name for a in best)],
    )


def _move(name: str, old: Answer | None, new: Answer | None) -> Move:
    either = new or old
    return Move(
        name,
        old and old.rank,
        new and new.rank,
        old and old.probability,
        new and new.probability,
        either and either.label,
    )
