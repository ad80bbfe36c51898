from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from knowformer.errors import VocabularyError
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
