import sys
from types import SimpleNamespace

import networkx
import pandas
import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.errors import DataError, MissingPackageError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.importing import (
    dataset_from_pandas,
    from_hetero,
    from_networkx,
    from_pandas,
    from_pyg,
    make_dataset,
    to_hetero,
    to_networkx,
    to_pandas,
    to_pyg,
)


def named(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    entities, relations = graph.entities.names, graph.relations.names
    return {(entities[h], relations[r], entities[t]) for h, r, t in graph.facts.tolist()}


def test_pandas_there_and_back(family: KnowledgeGraph) -> None:
    frame = to_pandas(family)
    assert list(frame.columns) == ["head", "relation", "tail"]
    assert named(from_pandas(frame)) == named(family)
    assert named(from_pandas(frame.rename(columns={"head": "who"}), ("who", "relation", "tail")))


def test_a_frame_keeps_the_splits_of_a_dataset(ring: Dataset) -> None:
    frame = to_pandas(ring)
    assert frame["split"].value_counts().to_dict() == {
        split.name: len(split.facts) for split in (ring.train, ring.valid, ring.test)
    }
    assert dataset_from_pandas(frame).same_as(ring)


def test_networkx_there_and_back(family: KnowledgeGraph) -> None:
    graph = to_networkx(family)
    assert graph.number_of_edges() == len(family.facts)
    back = from_networkx(graph)
    assert named(back) == named(family)
    assert "zoe" in back.entities  # who has no facts


def test_a_plain_networkx_graph_has_one_relation() -> None:
    assert named(from_networkx(networkx.path_graph(3))) == {
        ("0", "linked_to", "1"),
        ("1", "linked_to", "2"),
    }


def test_pyg_there_and_back(family: KnowledgeGraph) -> None:
    pytest.importorskip("torch_geometric", exc_type=ImportError)
    data = to_pyg(family)
    data.validate()
    assert from_pyg(data).same_as(family)


def test_pyg_marks_splits_and_needs_no_package_to_be_read(ring: Dataset) -> None:
    pytest.importorskip("torch_geometric", exc_type=ImportError)
    data = to_pyg(ring)
    assert (data.edge_split == 2).sum() == len(ring.test.facts)
    plain = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=4)
    graph = from_pyg(plain)
    assert len(graph.entities) == 4
    assert named(graph) == {("0", "linked_to", "1"), ("1", "linked_to", "2")}


def test_hetero_there_and_back(family: KnowledgeGraph, ring: Dataset) -> None:
    pytest.importorskip("torch_geometric", exc_type=ImportError)
    types = {
        name: "parent" if name in {"ann", "dan", "eve"} else "child" for name in family.entities
    }
    for given in (None, types):
        data = to_hetero(family, types=given)
        data.validate()
        back = from_hetero(data)
        assert named(back) == named(family)
        assert set(back.entities) == set(family.entities)  # zoe, who has no facts, too
    assert ("parent", "mother_of", "parent") in data.edge_types  # eve is ann's
    assert ("parent", "mother_of", "child") in data.edge_types
    again = to_hetero(back, types=types)
    assert again.edge_types == data.edge_types
    for kind in data.edge_types:
        assert torch.equal(again[kind].edge_index, data[kind].edge_index)
    splits = torch.cat([store.edge_split for store in to_hetero(ring).edge_stores])
    assert splits.bincount().tolist() == [
        len(split.facts) for split in (ring.train, ring.valid, ring.test)
    ]


def test_hetero_without_names_is_called_by_type_and_number() -> None:
    pytest.importorskip("torch_geometric", exc_type=ImportError)
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data["drug"].x, data["disease"].num_nodes = torch.zeros(2, 3), 1
    assert len(from_hetero(data).facts) == 0
    data["drug", "treats", "disease"].edge_index = torch.tensor([[1, 0, 1], [0, 0, 0]])
    assert named(from_hetero(data)) == {
        ("drug:1", "treats", "disease:0"),
        ("drug:0", "treats", "disease:0"),
    }
    data["disease"].entity_names = ["drug:0"]
    with pytest.raises(DataError, match="3 different names, got 2"):
        from_hetero(data)
    data["disease"].entity_names = ["flu", "cold"]
    with pytest.raises(DataError, match="1 names of type 'disease', got 2"):
        from_hetero(data)


def test_make_dataset_splits_a_graph(ring: Dataset) -> None:
    graph = KnowledgeGraph(ring.train.graph.entities, ring.relations, ring.train.known)
    dataset = make_dataset(graph, seed=3)
    assert named(
        KnowledgeGraph(dataset.train.graph.entities, dataset.relations, dataset.train.known)
    ) == named(graph)
    assert len(dataset.valid.facts) == len(dataset.test.facts) == 3


def test_what_cannot_be_read_is_refused() -> None:
    frame = pandas.DataFrame({"head": ["a", "b"], "relation": ["r", None], "tail": ["b", "c"]})
    with pytest.raises(DataError, match="row 1"):
        from_pandas(frame)
    with pytest.raises(DataError, match="mean 'relation'"):
        from_pandas(frame, ("head", "relatoin", "tail"))
    frame = pandas.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"], "split": ["dev"]})
    with pytest.raises(DataError, match="'dev'"):
        dataset_from_pandas(frame)
    with pytest.raises(DataError, match="edge_index"):
        from_pyg(SimpleNamespace(edge_index=torch.zeros(3, 2)))
    edges = torch.tensor([[0], [2]])
    with pytest.raises(DataError, match="3 different entity names"):
        from_pyg(SimpleNamespace(edge_index=edges, num_nodes=3), entities=["a", "b"])


@pytest.mark.parametrize(
    ("package", "convert"),
    [
        ("pandas", to_pandas),
        ("networkx", to_networkx),
        ("torch_geometric", to_pyg),
        ("torch_geometric", to_hetero),
    ],
)
def test_a_missing_package_is_named(
    package: str, convert, family: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match="pip install"):
        convert(family)


def test_a_relation_without_a_training_fact_is_refused() -> None:
    rows = [("a", "r", "b", "train"), ("b", "r", "c", "valid"), ("a", "s", "c", "test")]
    frame = pandas.DataFrame(rows, columns=["head", "relation", "tail", "split"])
    with pytest.raises(DataError, match="training facts, got 's' in test"):
        dataset_from_pandas(frame)
