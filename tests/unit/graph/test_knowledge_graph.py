from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from knowformer.errors import DataError, VocabularyError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import NamedTriple


def test_facts_are_numbered_in_order_and_repetitions_count_once() -> None:
    graph = KnowledgeGraph.from_triples([("b", "r", "a"), ("a", "s", "c"), ("b", "r", "a")])
    assert list(graph.entities) == ["b", "a", "c"]
    assert list(graph.relations) == ["r", "s"]
    assert torch.equal(graph.facts, torch.tensor([[0, 0, 1], [1, 1, 2]]))


def test_more_entities_are_candidates_without_facts(family: KnowledgeGraph) -> None:
    assert family.entities.names[-1] == "zoe"
    assert len(family.entities) == 6
    zoe = family.entities.id("zoe")
    assert not (family.facts[:, [0, 2]] == zoe).any()
    assert family.adjacency.num_entities == 6


def test_a_models_relations_are_kept_in_its_order_and_others_are_refused() -> None:
    relations = Vocabulary(["unused", "r"], kind="relation")
    graph = KnowledgeGraph.from_triples([("a", "r", "b")], relations=relations)
    assert torch.equal(graph.facts, torch.tensor([[0, 1, 1]]))
    with pytest.raises(VocabularyError, match="'s'"):
        KnowledgeGraph.from_triples([("a", "s", "b")], relations=relations)


def test_a_graph_may_have_no_facts() -> None:
    graph = KnowledgeGraph.from_triples([], more_entities=["a", "b"])
    assert graph.facts.shape == (0, 3)
    assert graph.adjacency.num_edges == 0


def test_entity_keys_follow_names() -> None:
    first = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")])
    second = KnowledgeGraph.from_triples([("c", "r", "a"), ("b", "r", "a")])
    assert np.array_equal(second.entity_keys, first.entity_keys[[2, 0, 1]])


def test_a_graph_is_read_from_a_file(
    tmp_path: Path, write_triples: Callable[[Path, Sequence[NamedTriple]], Path]
) -> None:
    path = write_triples(tmp_path / "graph.tsv", [("a", "r", "b")])
    graph = KnowledgeGraph.from_file(path)
    assert repr(graph) == "KnowledgeGraph(2 entities, 1 relations, 1 facts)"


def test_a_changed_graph_is_a_snapshot_of_the_next_version(family: KnowledgeGraph) -> None:
    facts, names = family.facts.clone(), family.entities.names
    head, relation, tail = (
        vocabulary.names[number]
        for vocabulary, number in zip(
            (family.entities, family.relations, family.entities), facts[0].tolist(), strict=True
        )
    )
    grown = family.with_facts(added=[("zoe", relation, "new")], removed=[(head, relation, tail)])
    assert (family.version, grown.version) == (0, 1)
    assert grown.entities.names == (*names, "new")
    added = [names.index("zoe"), facts[0, 1].item(), len(names)]
    assert grown.facts.tolist() == [*facts[1:].tolist(), added]
    assert torch.equal(family.facts, facts)
    assert family.entities.names == names
    assert grown.relations is family.relations


def test_facts_that_are_there_are_added_to_no_effect() -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")])
    assert graph.with_facts(added=[("b", "r", "c")]) is graph
    assert graph.with_facts(added=[("b", "r", "c")], removed=[("b", "r", "c")]) is graph
    assert graph.with_facts() is graph
    assert graph.with_facts(added=[("c", "r", "d"), ("c", "r", "d")]).facts.tolist()[2:] == [
        [2, 0, 3]
    ]


def test_what_cannot_change_is_refused_and_leaves_no_trace() -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")])
    with pytest.raises(DataError, match=r"to remove, got \('c', 'r', 'b'\), .* its 2\."):
        graph.with_facts(added=[("x", "r", "y")], removed=[("b", "r", "c"), ("c", "r", "b")])
    with pytest.raises(VocabularyError, match="1 relation names, got 's'"):
        graph.with_facts(added=[("x", "s", "y")])
    with pytest.raises(VocabularyError, match="3 entity names, got 'x'"):
        graph.with_facts(removed=[("x", "r", "a")])
    assert graph.with_facts(added=[("z", "r", "a")]).entities.names == ("a", "b", "c", "z")


def test_a_snapshot_shares_what_did_not_change() -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c")])
    grown = graph.with_facts(added=[("c", "r", "a")])
    assert grown.entities is graph.entities
    assert np.shares_memory(grown.entity_keys, graph.entity_keys)


def test_relations_are_renumbered_onto_those_of_a_model() -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "s", "c"), ("c", "r", "a")])
    relations = Vocabulary(["s", "more", "r"], kind="relation")
    other = graph.with_facts(added=[("c", "s", "d")]).with_relations(relations)
    assert other.facts.tolist() == [[0, 2, 1], [1, 0, 2], [2, 2, 0], [2, 0, 3]]
    assert other.relations is relations
    assert other.version == 1
    assert other.with_relations(Vocabulary(["s", "more", "r"], kind="relation")) is other
    fewer = Vocabulary(["s", "r"], kind="relation")
    assert other.with_relations(fewer).facts[:, 1].tolist() == [1, 0, 1, 0]
    with pytest.raises(VocabularyError, match="1 relation names, got 's'"):
        other.with_relations(Vocabulary(["r"], kind="relation"))
