import pytest
import torch

from knowformer.evaluation.by_relation import group_by_relation
from knowformer.evaluation.ranks import Ranks
from knowformer.graph.vocabulary import Vocabulary


def ranks(values: list[float]) -> Ranks:
    both = torch.tensor(values, dtype=torch.double)
    return Ranks(both, both, both < 5)


def test_every_relation_and_side_has_a_row_and_the_costliest_is_first() -> None:
    relations = Vocabulary(["likes", "knows"], kind="relation")
    asked = torch.tensor([0, 2, 0, 1, 0])  # likes, its heads, likes, knows, likes
    metrics = group_by_relation(
        asked,
        ranks([1, 2, 2, 8, 4]),
        {"rules": ranks([1, 1, 1, 1, 1]), "popularity": ranks([2, 2, 2, 2, 2])},
        relations=relations,
        has_views=True,
    )
    named = [(row["relation"], row["side"], row["facts"]) for row in metrics.rows]
    assert named == [("likes", "tail", 3), ("knows", "tail", 1), ("likes", "head", 1)]
    first, second, _ = metrics.rows
    assert first["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)
    assert (first["coverage"], second["coverage"]) == (1.0, 0.0)
    assert (first["rules_mrr"], first["popularity_mrr"]) == (1.0, 0.5)
    assert metrics.columns()["facts"] == [3, 1, 1]
    shown = str(metrics.head(2))
    assert "2 of 3 rows" in shown
    assert "in view" in shown
    assert len(metrics.to_pandas()) == 3


def test_without_views_there_is_no_coverage_to_show() -> None:
    one = Vocabulary(["likes"], kind="relation")
    asked = torch.tensor([0])
    metrics = group_by_relation(asked, ranks([1]), {}, relations=one, has_views=False)
    assert metrics.rows[0]["coverage"] is None
