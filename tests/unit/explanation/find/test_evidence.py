from collections.abc import Callable

import torch

from knowformer.data.dataset import Dataset
from knowformer.explanation.find.evidence import AnswerEvidence, EvidenceFinder
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.scoring.scorer import Scorer

Finder = Callable[..., EvidenceFinder]


def find(finder: EvidenceFinder, names: tuple[str, str, str], **how: int) -> AnswerEvidence:
    graph = finder.graph
    head, relation, answer = names
    ids = (graph.entities.id(head), graph.relations.id(relation), graph.entities.id(answer))
    return finder.find(finder.prediction(*ids), **how)


def test_scores_are_those_of_a_scorer_with_the_same_seed(
    family: KnowledgeGraph, finder: Finder
) -> None:
    bound = finder(family, seed=2)
    evidence = find(bound, ("eve", "mother_of", "bob"))
    head, relation = evidence.prediction.head, evidence.prediction.relation
    scorer = Scorer(bound.tracer.model, family, seed=2)
    expected = scorer.score(torch.tensor([head]), torch.tensor([relation])).dense()[0]
    torch.testing.assert_close(evidence.trace.scores.values, expected, rtol=1e-10, atol=1e-10)


def test_the_strongest_evidence_comes_first_and_no_more_than_asked_for(
    family: KnowledgeGraph, finder: Finder
) -> None:
    bound = finder(family, seed=2)
    many = find(bound, ("eve", "mother_of", "bob"), num_paths=5, num_prototypes=5)
    few = find(bound, ("eve", "mother_of", "bob"), num_paths=1, num_prototypes=2)
    assert len(many.paths) > 1
    assert few.paths == many.paths[:1]
    assert (few.prototypes, few.attended) == (many.prototypes[:2], many.attended[:2])
    assert many.distance == 2


def test_pieces_are_the_distinct_facts_of_the_first_paths_or_the_first_entities(
    family: KnowledgeGraph, finder: Finder
) -> None:
    evidence = find(finder(family, seed=2), ("eve", "mother_of", "bob"))
    edges = [list(path.edges) for path in evidence.paths]
    facts = [evidence.graph.fact_of_edge[of_path].tolist() for of_path in edges]
    assert evidence.pieces("paths", 1) == facts[0]
    everything = evidence.pieces("paths")
    assert len(everything) == len(set(everything))
    assert set(everything) == {fact for of_path in facts for fact in of_path}
    assert len(everything) < sum(map(len, facts))  # the paths have facts in common
    assert evidence.pieces("prototypes") == evidence.prototypes
    assert evidence.pieces("attended", 2) == evidence.attended[:2]
    assert evidence.pieces("paths", 0) == evidence.pieces("attended", 0) == []


def test_the_predicted_fact_is_no_evidence(family: KnowledgeGraph, finder: Finder) -> None:
    bound = finder(family, seed=2)
    known = find(bound, ("ann", "mother_of", "bob"))
    assert known.graph.num_facts == len(family.facts) - 1
    assert find(bound, ("eve", "mother_of", "bob")).graph.num_facts == len(family.facts)
    rows = bound.attention(known.prediction)
    assert rows is not None
    assert known.trace.attention is not None
    torch.testing.assert_close(rows.influence, known.trace.attention.influence)


def test_in_a_view_evidence_is_of_what_the_query_sees(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder
) -> None:
    graph = random_graph(2, num_entities=30, num_facts=60)
    bound = finder(graph, seed=2, view_size=12)
    found = [bound.find(bound.prediction(0, 1, answer)) for answer in range(1, 30)]
    for evidence in found:
        members = evidence.graph.entities
        assert len(members) == 12
        assert evidence.sees_answer == (evidence.prediction.answer in members.tolist())
        facts = evidence.graph.facts(range(evidence.graph.num_facts))
        assert graph.adjacency.has_fact(facts).all()
        if not evidence.sees_answer:
            assert evidence.paths == evidence.prototypes == evidence.attended == []
            assert bound.attention(evidence.prediction) is None
            continue
        rows, spread = evidence.trace.attention, bound.attention(evidence.prediction)
        assert rows is not None
        assert spread is not None
        torch.testing.assert_close(spread.influence[:, :, members], rows.influence)
        assert spread.influence.shape[-1] == 30
        placed = evidence.placed
        assert int(members[placed.answer]) == evidence.prediction.answer
        for path in evidence.paths:
            assert evidence.graph.sender[path.edges[0]] == placed.head
            assert evidence.graph.receiver[path.edges[-1]] == placed.answer
    assert any(evidence.paths for evidence in found)
    assert not all(evidence.sees_answer for evidence in found)


def test_on_a_split_its_known_facts_do_not_compete(ring: Dataset) -> None:
    model = KnowFormer(
        ModelConfig(hidden_dim=8, num_layers=1, num_heads=2), 2 * len(ring.relations)
    )
    initialize(model, generator=torch.Generator().manual_seed(0))
    finder = EvidenceFinder.on_split(model, ring.test, seed=0)
    known = ring.test.known
    for head, relation, answer in ring.test.facts.tolist():
        tails = known[(known[:, 0] == head) & (known[:, 1] == relation), 2]
        competitors = finder.prediction(head, relation, answer).competitors
        assert set((~competitors).nonzero().flatten().tolist()) == set(tails.tolist())
