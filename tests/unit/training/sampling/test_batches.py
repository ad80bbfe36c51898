from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

import pytest
import torch

from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.query import QueryBatch
from knowformer.training.sampling.batches import Targets, TrainingBatches

GraphBuilder = Callable[..., KnowledgeGraph]
Fact = tuple[int, int, int]

TARGETS: list[Targets] = ["all", "some", "one"]


def directed_facts(graph: KnowledgeGraph) -> list[Fact]:
    directed = with_inverse_facts(graph.facts, len(graph.relations))
    return [(h, r, t) for h, r, t in directed.tolist()]


def facts_in(batches: Iterable[QueryBatch]) -> list[Fact]:
    return [(h, r, t) for batch in batches for h, r, t in batch.facts.tolist()]


def queries_in(batches: Iterable[QueryBatch]) -> list[tuple[int, int]]:
    return [
        pair
        for batch in batches
        for pair in zip(batch.heads.tolist(), batch.relations.tolist(), strict=True)
    ]


def batches_of(graph: KnowledgeGraph, targets: Targets, batch_size: int = 7) -> TrainingBatches:
    return TrainingBatches(
        graph.facts, num_relations=len(graph.relations), batch_size=batch_size, targets=targets
    )


def epoch_of(batches: TrainingBatches, seed: int = 0, skip: int = 0) -> list[QueryBatch]:
    return list(batches.epoch(torch.Generator().manual_seed(seed), skip=skip))


def equal(first: QueryBatch, second: QueryBatch) -> bool:
    return vars(first).keys() == vars(second).keys() and all(
        torch.equal(value, vars(second)[name]) for name, value in vars(first).items()
    )


@pytest.mark.parametrize("targets", TARGETS)
def test_an_epoch_asks_every_training_query_once(
    random_graph: GraphBuilder, targets: Targets
) -> None:
    graph = random_graph(3, num_facts=50)
    batches = batches_of(graph, targets)
    epoch = epoch_of(batches)
    facts = directed_facts(graph)
    expected = Counter((h, r) for h, r, _ in facts)
    if targets != "one":
        expected = Counter(expected.keys())
    assert Counter(queries_in(epoch)) == expected
    assert batches.num_queries == expected.total()
    assert len(epoch) == len(batches)
    assert [len(batch) for batch in epoch[:-1]] == [7] * (len(epoch) - 1)


@pytest.mark.parametrize("targets", ["all", "one"])
def test_an_epoch_asks_for_every_fact_both_ways(
    random_graph: GraphBuilder, targets: Targets
) -> None:
    graph = random_graph(3, num_facts=50)
    asked = facts_in(epoch_of(batches_of(graph, targets)))
    assert sorted(asked) == sorted(directed_facts(graph))


def test_a_query_for_one_fact_asks_for_that_one_alone(random_graph: GraphBuilder) -> None:
    for batch in epoch_of(batches_of(random_graph(3, num_facts=50), "one")):
        assert sorted(batch.rows.tolist()) == list(range(len(batch)))


def test_some_answers_are_asked_at_least_one_a_query_and_all_in_time(
    random_graph: GraphBuilder,
) -> None:
    graph = random_graph(4, num_entities=6, num_facts=60)
    batches = batches_of(graph, "some")
    facts = set(directed_facts(graph))
    left_out: list[int] = []
    seen: set[Fact] = set()
    for seed in range(40):
        epoch = epoch_of(batches, seed)
        for batch in epoch:
            assert set(batch.rows.tolist()) == set(range(len(batch)))
        asked = facts_in(epoch)
        assert len(asked) == len(set(asked))
        assert set(asked) <= facts
        left_out.append(len(facts) - len(asked))
        seen |= set(asked)
    assert seen == facts
    # A part indeed: the rest stays visible as evidence.
    assert min(left_out) > 0


@pytest.mark.parametrize("targets", TARGETS)
def test_an_epoch_depends_on_its_generator_alone(
    random_graph: GraphBuilder, targets: Targets
) -> None:
    batches = batches_of(random_graph(5), targets)
    first, second = epoch_of(batches, 1), epoch_of(batches, 1)
    assert all(equal(a, b) for a, b in zip(first, second, strict=True))
    assert queries_in(first) != queries_in(epoch_of(batches, 2))


@pytest.mark.parametrize("targets", TARGETS)
def test_skipping_batches_goes_on_as_an_undisturbed_epoch(
    random_graph: GraphBuilder, targets: Targets
) -> None:
    batches = batches_of(random_graph(5, num_facts=50), targets)
    whole = epoch_of(batches)
    for skip in range(len(whole) + 1):
        rest = epoch_of(batches, skip=skip)
        assert len(rest) == len(whole) - skip
        assert all(equal(a, b) for a, b in zip(rest, islice(whole, skip, None), strict=True))
