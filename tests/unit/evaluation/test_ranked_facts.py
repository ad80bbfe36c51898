from pathlib import Path

import pytest
import torch

from knowformer.evaluation.ranked_facts import RankedFacts
from knowformer.evaluation.ranks import Ranks
from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph


@pytest.fixture
def facts(family: KnowledgeGraph) -> RankedFacts:
    """The first fact, ann mother_of bob, asked both ways; ann is outside her query's view."""
    optimistic = torch.tensor([1.0, 3.0], dtype=torch.double)
    seen = torch.tensor([True, False])
    scores = torch.tensor([0.5, -torch.inf])
    of_baseline = Ranks(optimistic, optimistic, torch.ones(2, dtype=torch.bool))
    return RankedFacts(
        with_inverse_facts(family.facts[:1], len(family.relations)),
        Ranks(optimistic, optimistic + 2, seen, scores),
        {"rules": of_baseline, "popularity": of_baseline},
        entities=family.entities,
        relations=family.relations,
        has_views=True,
    )


def test_a_fact_keeps_its_direction_whichever_side_is_asked(facts: RankedFacts) -> None:
    columns = facts.columns()
    assert columns == {
        "head": ["ann", "ann"],
        "relation": ["mother_of", "mother_of"],
        "tail": ["bob", "bob"],
        "side": ["tail", "head"],
        "rank": [2.0, 4.0],
        "rank_optimistic": [1.0, 3.0],
        "rank_pessimistic": [3.0, 5.0],
        "score": [0.5, None],
        "seen": [True, False],
        "rules_rank": [1.0, 3.0],
        "popularity_rank": [1.0, 3.0],
    }


def test_facts_are_written_and_grouped(facts: RankedFacts, tmp_path: Path) -> None:
    facts.write(tmp_path / "ranks.tsv")
    header, *rows = (tmp_path / "ranks.tsv").read_text("utf-8").splitlines()
    assert header.split("\t") == list(facts.columns())
    assert len(rows) == len(facts) == 2
    assert [row["mrr"] for row in facts.by_relation().rows] == [0.25, 0.5]
