"""The paper's figures: each beside ours, and whether it was met."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from knowformer_lab.report.costs import Cost, CostModel
from knowformer_lab.report.summary import Estimate, Summary

NEAR = 0.01  # of MRR or AUROC: what counts as met

State = Literal["met", "missed", "not run"]


class Headline(NamedTuple):
    """The metric that a table of the paper is summed up by, and where it is reported."""

    metric: str
    section: str
    source: str


HEADLINES = {
    "transductive": Headline("mrr", "Transductive", "tables 1 and 3"),
    "inductive": Headline("mrr", "Inductive", "table 2"),
    "ablation": Headline("mrr", "Ablation", "table 3"),
    "homogeneous": Headline("auroc", "Homogeneous link prediction", "appendix, AUROC"),
    "layers": Headline("mrr", "Layers", "appendix"),
}


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper and what became of it."""

    summary: Summary
    paper: float
    ours: Estimate | None
    cost: Cost | None
    """What a seed without a result would cost."""

    @property
    def table(self) -> str:
        """The part of the paper."""
        return self.summary.experiment.table

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None else self.ours.mean - self.paper

    @property
    def state(self) -> State:
        """Whether it was reached, or missed by at most ``NEAR``."""
        if self.difference is None:
            return "not run"
        return "met" if self.difference >= -NEAR else "missed"

    @property
    def missing_seeds(self) -> int:
        """How many of the experiment's seeds have no result."""
        return len(
            set(self.summary.experiment.seeds) - {result.seed for result in self.summary.results}
        )

    @property
    def core_minutes_left(self) -> float | None:
        """What the missing seeds would cost; None where nothing tells."""
        if not self.missing_seeds:
            return 0.0
        return None if self.cost is None else self.cost.core_minutes * self.missing_seeds


def figures_of_paper(summaries: list[Summary]) -> list[PaperFigure]:
    """Returns every figure of the paper that an experiment stands for, part by part."""
    costs = CostModel(summaries)
    figures: list[PaperFigure] = []
    for table, headline in HEADLINES.items():
        for summary in summaries:
            paper = summary.published(headline.metric)
            if summary.experiment.table == table and paper is not None:
                ours = summary.estimate(headline.metric)
                cost = costs.estimate(summary.experiment)
                figures.append(PaperFigure(summary, paper, ours, cost))
    return figures
