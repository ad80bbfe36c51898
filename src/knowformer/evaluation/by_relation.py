"""Metrics by relation and side: which relations a model can be asked about, and which not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.evaluation.baselines.ranking import Baseline
from knowformer.evaluation.metrics import rank_metrics
from knowformer.evaluation.ranks import Ranks
from knowformer.graph.inverse import asked_relation
from knowformer.graph.vocabulary import Vocabulary
from knowformer.tables import Cell, Column, TableView, Tabular

Row = dict[str, Cell]


@dataclass(frozen=True, repr=False)
class RelationMetrics(Tabular):
    """A row per relation and side; realistic ranks."""

    rows: list[Row]
    """Keys: relation, side (what was asked for), facts, mrr, hits@k, mr, coverage (of views, None
    without), and the MRR of the baselines, rules_mrr and popularity_mrr."""
    num_all: int
    """Rows before ``head`` took some."""

    def columns(self) -> dict[str, list[Cell]]:
        """Returns the same as columns: ``pandas.DataFrame(metrics.columns())``."""
        return {key: [row[key] for row in self.rows] for key in self.rows[0]} if self.rows else {}

    def head(self, limit: int) -> "RelationMetrics":
        """Returns the first rows."""
        return replace(self, rows=self.rows[:limit])

    def table(self) -> TableView:
        """Returns the rows as a table."""
        has_views = any(row["coverage"] is not None for row in self.rows)
        columns = {
            "relation": Column("relation"),
            "side": Column("asks"),
            "facts": Column("facts", is_number=True),
            "mrr": Column("MRR", is_number=True),
            "hits@1": Column("HITS@1", is_number=True, is_shown=False),
            "hits@10": Column("HITS@10", is_number=True),
            "coverage": Column("in view", decimals=2, is_number=True, is_shown=has_views),
            "rules_mrr": Column("rules", is_number=True),
            "popularity_mrr": Column("popular", is_number=True),
        }
        rows = [[row[key] for key in columns] for row in self.rows]
        return TableView(
            "MRR by relation and by what is asked, beside that of the baselines",
            list(columns.values()),
            rows,
            self._caption(),
        )

    def _caption(self) -> str:
        shown = len(self.rows)
        few = "" if shown == self.num_all else f"{shown} of {self.num_all} rows: "
        return f"{few}those that cost the most overall MRR first (facts times 1 - MRR)"


def group_by_relation(
    asked: Int[Tensor, " F"],
    ranks: Ranks,
    baselines: Mapping[Baseline, Ranks],
    *,
    relations: Vocabulary,
    has_views: bool,
) -> RelationMetrics:
    """Returns the metrics of every relation and side.

    Args:
        asked: the relation of each fact; an inverse asks for a head.
        ranks: the model's.
        baselines: their ranks of the same facts.
        relations: names.
        has_views: whether coverage says anything.
    """
    order = torch.argsort(asked, stable=True)
    distinct: Tensor
    distinct, counts = torch.unique_consecutive(asked[order], return_counts=True)
    sizes: list[int] = counts.tolist()
    model = ranks.realistic[order].split(sizes)
    seen = ranks.is_seen[order].double().split(sizes)
    others = {name: each.realistic[order].split(sizes) for name, each in baselines.items()}
    rows: list[Row] = []
    for number, relation in enumerate(distinct.tolist()):
        name, side = asked_relation(relation, relations)
        row: Row = {"relation": name, "side": side, "facts": sizes[number]}
        row |= rank_metrics(model[number])
        row["coverage"] = seen[number].mean().item() if has_views else None
        for baseline, of_relation in others.items():
            row[f"{baseline}_mrr"] = rank_metrics(of_relation[number])["mrr"]
        rows.append(row)
    lost = torch.stack([(1.0 - 1.0 / part).sum() for part in model]) if model else counts
    costliest: list[int] = torch.argsort(lost, descending=True, stable=True).tolist()
    return RelationMetrics([rows[number] for number in costliest], len(rows))
