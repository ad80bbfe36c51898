from collections.abc import Callable
from itertools import islice

import torch

from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.known_answers import KnownAnswers
from knowformer.training.sampling.pairs import PairBatches

NUM_FACTS = 30


def pairs_of(graph: KnowledgeGraph, batch_size: int = 8) -> PairBatches:
    return PairBatches(
        graph.facts,
        KnownAnswers.of(graph),
        num_entities=len(graph.entities),
        num_relations=len(graph.relations),
        batch_size=batch_size,
    )


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_an_epoch_asks_every_fact_both_ways_beside_as_many_unlinked_pairs(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    graph = random_graph(num_facts=NUM_FACTS)
    pairs, known = pairs_of(graph), KnownAnswers.of(graph)
    batches = list(pairs.epoch(seeded()))
    assert len(batches) == len(pairs)
    assert sum(map(len, batches)) == pairs.num_queries
    is_fact = [known.holds(batch.facts) for batch in batches]
    assert all(int(linked.sum()) == len(linked) / 2 for linked in is_fact)
    facts = torch.cat([b.facts[linked] for b, linked in zip(batches, is_fact, strict=True)])
    directed = with_inverse_facts(graph.facts, len(graph.relations))
    assert sorted(facts.tolist()) == sorted(directed.tolist())
    assert all(torch.equal(b.rows, torch.arange(len(b))) for b in batches)


def test_skipping_batches_leaves_the_others_as_they_are(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    pairs = pairs_of(random_graph(num_facts=NUM_FACTS))
    whole = list(pairs.epoch(seeded(3)))
    later = list(pairs.epoch(seeded(3), skip=2))
    assert len(later) == len(whole) - 2
    for one, other in zip(islice(whole, 2, None), later, strict=True):
        assert torch.equal(one.facts, other.facts)


def test_a_batch_of_one_query_still_has_a_fact_and_a_pair(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    first = next(pairs_of(random_graph(), batch_size=1).epoch(seeded()))
    assert len(first) == 2
