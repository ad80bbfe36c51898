"""What is seen after a removal, against graphs in which the removed facts never were."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.prediction import Prediction
from knowformer.explanation.find.sight import Sight
from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.extractor import ViewExtractor
from knowformer.views.settings import ViewSettings

SIZES = [None, 1, 4, 7]
GraphBuilder = Callable[..., KnowledgeGraph]


def settings_of(size: int | None) -> ViewSettings | None:
    return None if size is None else ViewSettings(size=size)


def predict(graph: KnowledgeGraph, fact: Tensor) -> Prediction:
    return Prediction(*fact.tolist(), competitors=torch.ones(len(graph.entities), dtype=torch.bool))


def without(graph: KnowledgeGraph, *gone: Tensor) -> KnowledgeGraph:
    left = [fact for fact in graph.facts if not any(torch.equal(fact, each) for each in gone)]
    facts = torch.stack(left) if left else graph.facts[:0]
    return KnowledgeGraph(graph.entities, graph.relations, facts)


def check(
    seen: EvidenceGraph, graph: KnowledgeGraph, prediction: Prediction, size: int | None
) -> None:
    """Compares what is seen with what the query sees of a graph that hides nothing from it."""
    settings, entities = settings_of(size), torch.arange(len(graph.entities))
    facts = set(map(tuple, graph.facts.tolist()))
    if settings is not None:
        extractor = ViewExtractor(graph.adjacency, graph.entity_keys, settings)
        query = torch.tensor([prediction.head]), torch.tensor([prediction.relation])
        views = extractor.extract(*query, outside=True)
        entities, others = views.entities, views.outside
        assert seen.outside is not None
        assert others is not None
        assert seen.outside.entities.tolist() == others.entities.tolist()
        members = set(entities.tolist())
        facts = {(h, r, t) for h, r, t in facts if {h, t} <= members}
    assert seen.entities.tolist() == entities.tolist()
    assert set(map(tuple, seen.facts(range(seen.num_facts)).tolist())) == facts


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("at", [0, 3])
def test_a_query_does_not_see_its_own_fact_in_either_direction(
    random_graph: GraphBuilder, size: int | None, at: int
) -> None:
    graph = random_graph(4)
    sight = Sight(graph, settings_of(size))
    rest = without(graph, graph.facts[at])
    for fact in with_inverse_facts(graph.facts[at : at + 1], len(graph.relations)):
        prediction = predict(graph, fact)
        check(sight.of(prediction), rest, prediction, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_removal_shows_what_the_graph_without_these_facts_would_show(
    random_graph: GraphBuilder, size: int | None, seed: int
) -> None:
    graph = random_graph(seed)
    sight, prediction = Sight(graph, settings_of(size)), predict(graph, graph.facts[6])
    gone = graph.facts[[2, 7, 9]]
    left = without(graph, graph.facts[6], *gone)
    check(sight.without(prediction, gone), left, prediction, size)
    alone = KnowledgeGraph(graph.entities, graph.relations, gone)
    check(sight.alone(prediction, gone), alone, prediction, size)
    nothing = KnowledgeGraph(graph.entities, graph.relations, gone[:0])
    check(sight.alone(prediction, gone[:0]), nothing, prediction, size)


def test_the_whole_graph_is_the_same_object_while_nothing_is_hidden(
    random_graph: GraphBuilder,
) -> None:
    graph = random_graph(1)
    sight = Sight(graph, None)
    strangers = [predict(graph, torch.tensor([0, 0, entity])) for entity in range(12)]
    unknown = [each for each in strangers if not graph.adjacency.has_fact(
        torch.tensor([[each.head, each.relation, each.answer]])).any()]  # fmt: skip
    assert len(unknown) > 1
    assert len({id(sight.of(each)) for each in unknown}) == 1
