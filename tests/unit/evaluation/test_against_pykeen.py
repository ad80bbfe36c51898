"""Ranks and metrics agree with PyKEEN's RankBasedEvaluator on the same score table.

tests/fixtures/pykeen_ranks.json was made by scripts/make_pykeen_ranks.py. Definitions agree
throughout: the realistic rank is the mean of the optimistic and the pessimistic one, and the
realistic MRR averages the reciprocals of realistic ranks (not of the two others). The difference
is in precision: PyKEEN keeps realistic ranks in float32, and their mean and their harmonic mean are
taken there, so these two figures are compared to single precision and all others to double.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from knowformer.data.dataset import Split
from knowformer.evaluation.evaluate import rank_split
from knowformer.evaluation.ranks import TIE_POLICIES, Ranks, TiePolicy
from knowformer.evaluation.report import metrics_by_policy
from knowformer.graph.inverse import is_inverse
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.queries.scores import Scores
from knowformer.scoring.scorer import Scorer

FIXTURE = Path(__file__).parents[2] / "fixtures" / "pykeen_ranks.json"


class TableScorer(Scorer):
    """Scores from a table (head, relation with inverses, tail) in place of a model's."""

    def __init__(self, table: torch.Tensor) -> None:
        self._table = table

    def score(
        self, heads: torch.Tensor, relations: torch.Tensor, *, outside: bool = False
    ) -> Scores:
        del outside  # everything is seen
        return Scores.of_all(self._table[heads, relations])


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return json.loads(FIXTURE.read_text("utf-8"))


@pytest.fixture(scope="module")
def ranks_by_side(record: dict[str, Any]) -> dict[str, Ranks]:
    """Our ranks of the test facts, by the side that was asked for."""
    # (head, relation) rows for tails, then (tail, inverse relation) rows for heads.
    table = torch.cat(
        [torch.tensor(record["tail_scores"]), torch.tensor(record["head_scores"])], dim=1
    ).float()
    num_entities, twice_relations, _ = table.shape
    test, others = torch.tensor(record["test_facts"]), torch.tensor(record["other_facts"])
    graph = KnowledgeGraph(
        Vocabulary(map(str, range(num_entities)), kind="entity"),
        Vocabulary(map(str, range(twice_relations // 2)), kind="relation"),
        others,
    )
    split = Split("test", graph, test, torch.cat([others, test]))
    ranks, directed, _ = rank_split(TableScorer(table), split, batch_size=7)
    asks_head = is_inverse(directed[:, 1], twice_relations // 2)
    return {"head": ranks[asks_head], "tail": ranks[~asks_head], "both": ranks}


@pytest.mark.parametrize("side", ["head", "tail"])
def test_every_rank_equals_pykeens(
    record: dict[str, Any], ranks_by_side: dict[str, Ranks], side: str
):
    ours, theirs = ranks_by_side[side], record["ranks"][side]
    assert ours.optimistic.tolist() == theirs["optimistic"]
    assert ours.pessimistic.tolist() == theirs["pessimistic"]
    assert ours.realistic.tolist() == theirs["realistic"]


@pytest.mark.parametrize("policy", TIE_POLICIES)
@pytest.mark.parametrize("side", ["head", "tail", "both"])
def test_every_metric_equals_pykeens(
    record: dict[str, Any], ranks_by_side: dict[str, Ranks], side: str, policy: TiePolicy
):
    ours = metrics_by_policy(ranks_by_side[side])[policy]
    theirs: dict[str, float] = record["metrics"][side][policy]
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        in_single_precision = policy == "realistic" and name in {"mr", "mrr"}
        assert ours[name] == pytest.approx(value, rel=1e-7 if in_single_precision else 1e-12), name


def test_the_table_has_ties_and_filtered_answers_to_disagree_about(
    record: dict[str, Any], ranks_by_side: dict[str, Ranks]
):
    """Guards the comparison itself: without ties and filters it would prove little."""
    both = ranks_by_side["both"]
    assert (both.pessimistic > both.optimistic).double().mean() > 0.5
    assert record["metrics"]["head"] != record["metrics"]["tail"]
    pairs = {(head, relation) for head, relation, _ in record["other_facts"]}
    shared = [fact for fact in record["test_facts"] if (fact[0], fact[1]) in pairs]
    assert len(shared) > 40
