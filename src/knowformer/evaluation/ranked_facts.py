"""RankedFacts: every fact of a split asked both ways, with its ranks; by relation and to files."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.evaluation.baselines.ranking import Baseline
from knowformer.evaluation.by_relation import RelationMetrics, group_by_relation
from knowformer.evaluation.rank_files import write_columns
from knowformer.evaluation.ranks import Ranks
from knowformer.graph.inverse import base_relation, is_inverse
from knowformer.graph.vocabulary import Vocabulary
from knowformer.tables import Cell


@dataclass(frozen=True, eq=False)
class RankedFacts:
    """Ranks of single facts, a model's and the baselines'."""

    directed: Int[Tensor, "F 3"]
    """Facts as asked: an inverse relation asks for a head."""
    ranks: Ranks
    baselines: dict[Baseline, Ranks]
    entities: Vocabulary
    relations: Vocabulary
    has_views: bool
    """Whether queries see a part of the graph each."""

    def __len__(self) -> int:
        return len(self.directed)

    @property
    def asks_head(self) -> Bool[Tensor, " F"]:
        """Which facts are asked for their head."""
        return is_inverse(self.directed[:, 1], len(self.relations))

    def columns(self) -> dict[str, list[Cell]]:
        """Returns a row per fact and side as columns: ``pandas.DataFrame(facts.columns())``.

        ``side`` is what was asked for. ``seen`` tells whether the answer is in its query's view;
        one that is not has no score.
        """
        heads, relations, tails = self.directed.unbind(1)
        asks_head, ranks = self.asks_head, self.ranks
        entity, named = self.entities.name, self.relations.name
        head, tail = (
            torch.where(asks_head, one, other).tolist()
            for one, other in ((tails, heads), (heads, tails))
        )
        relation = base_relation(relations, len(self.relations)).tolist()
        scores: list[float] = [] if ranks.scores is None else ranks.scores.tolist()
        return {
            "head": [entity(number) for number in head],
            "relation": [named(number) for number in relation],
            "tail": [entity(number) for number in tail],
            "side": ["head" if backwards else "tail" for backwards in asks_head.tolist()],
            "rank": ranks.realistic.tolist(),
            "rank_optimistic": ranks.optimistic.tolist(),
            "rank_pessimistic": ranks.pessimistic.tolist(),
            "score": [score if score > -torch.inf else None for score in scores],
            "seen": ranks.is_seen.tolist(),
            **{f"{name}_rank": each.realistic.tolist() for name, each in self.baselines.items()},
        }

    def by_relation(self) -> RelationMetrics:
        """Returns the metrics of every relation and side, those that cost the most MRR first."""
        return group_by_relation(
            self.directed[:, 1],
            self.ranks,
            self.baselines,
            relations=self.relations,
            has_views=self.has_views,
        )

    def write(self, path: str | Path) -> None:
        """Writes the columns to a file, whole or not at all: .parquet, .tsv or .csv.

        Raises:
            ConfigError: the name ends otherwise.
            MissingPackageError: Parquet without pyarrow.
            StorageError: the file cannot be written.
        """
        write_columns(Path(path), self.columns())
