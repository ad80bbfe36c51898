"""Against the definition: tables of scores for every entity, ranked as a model's are."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.data.dataset import Dataset, Split
from knowformer.evaluation.baselines import ranking
from knowformer.evaluation.baselines.matches import find_matches
from knowformer.evaluation.baselines.popularity import Popularity
from knowformer.evaluation.baselines.ranking import rank_baselines
from knowformer.evaluation.baselines.rules import learn_rules
from knowformer.evaluation.metrics import rank_metrics
from knowformer.evaluation.ranks import Ranks, filtered_ranks
from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.scores import Scores


def make_split(graph: KnowledgeGraph, *, held_out: int) -> Split:
    facts = graph.facts[
        torch.randperm(len(graph.facts), generator=torch.Generator().manual_seed(7))
    ]
    seen = KnowledgeGraph(graph.entities, graph.relations, facts[held_out:])
    return Split("valid", seen, facts[:held_out], graph.facts)


def rank_tables(
    split: Split, score: Callable[[Int[np.ndarray, " F"], Int[np.ndarray, " F"]], Tensor]
) -> Ranks:
    """Every fact as a query of its own."""
    sizes = {
        "num_entities": len(split.graph.entities),
        "num_relations": len(split.graph.relations),
    }
    directed = with_inverse_facts(split.facts, sizes["num_relations"])
    heads, relations, tails = directed.unbind(1)
    known = KnownAnswers(split.known, **sizes).lookup(heads, relations)
    scores = Scores.of_all(score(heads.numpy(), relations.numpy()))
    return filtered_ranks(scores, known, torch.arange(len(directed)), tails)


@pytest.mark.parametrize("seed", range(4))
def test_ranks_are_those_of_tables_of_scores(
    random_graph: Callable[..., KnowledgeGraph], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(ranking, "QUERIES_AT_ONCE", 7)
    split = make_split(random_graph(seed, num_entities=14, num_facts=60), held_out=20)
    graph, everyone = split.graph, np.arange(14)
    popularity, rules = Popularity(graph), learn_rules(graph)

    def popular(heads: Int[np.ndarray, " F"], relations: Int[np.ndarray, " F"]) -> Tensor:
        del heads
        rows = [popularity.of(np.full(14, relation), everyone) for relation in relations]
        return torch.from_numpy(np.stack(rows))

    def follow(heads: Int[np.ndarray, " F"], relations: Int[np.ndarray, " F"]) -> Tensor:
        table: Float[Tensor, "F V"] = popular(heads, relations)
        found = find_matches(rules, graph.adjacency, heads, relations)
        table[found.queries, found.entities] += torch.from_numpy(found.evidence)
        return table

    ranks = rank_baselines(split, trained_on=graph)
    for name, score in (("popularity", popular), ("rules", follow)):
        expected = rank_tables(split, score)
        assert torch.equal(ranks[name].optimistic, expected.optimistic)
        assert torch.equal(ranks[name].pessimistic, expected.pessimistic)
    assert not torch.equal(ranks["rules"].realistic, ranks["popularity"].realistic)


def test_rules_of_one_graph_rank_the_facts_of_another(ring: Dataset) -> None:
    """Sixteen places in another ring of other names, of which no fact was learnt from."""
    names = [f"stop{number}" for number in range(16)]
    steps = [(names[i], "next", names[(i + 1) % 16]) for i in range(16)]
    asked = [(names[i], "skip", names[(i + 2) % 16]) for i in range(16)]
    graph = KnowledgeGraph.from_triples(steps, relations=ring.relations)
    facts = KnowledgeGraph.from_triples([*steps, *asked], relations=ring.relations).facts
    split = Split("test", graph, facts[16:], facts)
    ranks = rank_baselines(split, trained_on=ring.train.graph)
    assert rank_metrics(ranks["rules"].realistic)["mrr"] == 1.0
    # No skip in sight: all places are equally popular, less the one that is known.
    assert ranks["popularity"].realistic.tolist() == [8.5] * 32
    again = rank_baselines(split, trained_on=ring.train.graph)
    assert torch.equal(again["rules"].realistic, ranks["rules"].realistic)
