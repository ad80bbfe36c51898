"""Comparison: why one answer and not another, the evidence of both side by side."""

from dataclasses import dataclass

from knowformer.explanation.explanation import Explanation
from knowformer.tables import Cell, Column, TableView, Tabular


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Two answers to one question; ``standing`` of each has its rank and probability."""

    first: Explanation
    second: Explanation

    def table(self) -> TableView:
        """Returns the evidence of both, a row for each path and each prototype."""
        sides = (self.first, self.second)
        rows: list[list[Cell]] = [
            [side.labels.entity(side.answer), *row] for side in sides for row in side.table().rows
        ]
        places = [f"{side.labels.entity(side.answer)}: {side.place()}" for side in sides]
        columns = [Column("answer"), *self.first.table().columns]
        return TableView(self.first.question(), columns, rows, "; ".join(places))
