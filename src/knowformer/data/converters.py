"""Graphs from and to pandas, networkx and PyTorch Geometric; each is imported only when used.

    from_pandas(frame)      to_pandas(graph)      a row per fact
    from_networkx(graph)    to_networkx(graph)    an edge per fact, with its relation
    from_pyg(data)          to_pyg(graph)         edge_index and edge_type
    from_hetero(data)       to_hetero(graph)      edge_index by relation and types of nodes

What is read becomes a ``KnowledgeGraph``, and ``make_dataset`` splits it; ``dataset_from_pandas``
takes the splits of a frame. What is written may be a data set too, whose facts say their split.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from knowformer.data.dataset import HOMOGENEOUS_RELATION, Dataset, build_dataset
from knowformer.data.fact_table import first_occurrences
from knowformer.data.splitting import SPLIT_IDS
from knowformer.errors import DataError, require_package, suggest
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.storage.triples_io import COLUMNS

if TYPE_CHECKING:
    import networkx
    import pandas
    import torch_geometric.data


def from_pandas(frame: "pandas.DataFrame", columns: Sequence[str] = COLUMNS) -> KnowledgeGraph:
    """Builds a graph from a data frame with a row per fact.

    Args:
        frame: names, or numbers that become names.
        columns: those of head, relation and tail.

    Raises:
        DataError: there is no such column, or a value is missing.
    """
    heads, relations, tails = (_column(frame, name) for name in columns)
    return KnowledgeGraph.from_triples(list(zip(heads, relations, tails, strict=True)))


def dataset_from_pandas(
    frame: "pandas.DataFrame",
    columns: Sequence[str] = COLUMNS,
    *,
    split: str = "split",
    name: str = "frame",
) -> Dataset:
    """Builds a data set from a frame with a column that says train, valid or test.

    Raises:
        DataError: there is no such column, a value is missing, or a split is another or empty.
    """
    split_of: dict[tuple[str, str, str], str] = {}  # in order of first appearance, as the graph is
    values = [_column(frame, column) for column in (*columns, split)]
    for head, relation, tail, its_split in zip(*values, strict=True):
        split_of.setdefault((head, relation, tail), its_split)
    unknown = sorted(set(split_of.values()) - set(SPLIT_IDS))
    if unknown:
        raise DataError(f"Expected {', '.join(SPLIT_IDS)} in column {split!r}, got {unknown[0]!r}.")
    graph = KnowledgeGraph.from_triples(list(split_of))
    facts, splits = graph.facts.numpy(), np.array(list(split_of.values()))
    missing = [its_split for its_split in SPLIT_IDS if its_split not in splits]
    if missing:
        known = ", ".join(SPLIT_IDS)
        raise DataError(f"Expected facts in each of {known}, got none in {missing[0]}.")
    parts = [facts[splits == its_split] for its_split in SPLIT_IDS]
    return build_dataset(name, parts, graph.entities.names, graph.relations.names)


def _column(frame: "pandas.DataFrame", name: str) -> list[str]:
    known = [str(column) for column in frame.columns]
    if name not in known:
        raise DataError(
            f"Expected a column named {name!r} in the frame, found {', '.join(known)}."
            f"{suggest(name, known)}"
        )
    column: Any = frame[name]
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax())
        raise DataError(f"Expected a value in column {name!r}, got none in row {row}.")
    return [str(value) for value in column.tolist()]


def to_pandas(graph: KnowledgeGraph | Dataset) -> "pandas.DataFrame":
    """Returns a frame with a row per fact: head, relation, tail, and split for a data set.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    require_package("pandas", extra="frames", purpose="make a data frame")
    import pandas

    content: dict[str, list[str]] = {name: [] for name in COLUMNS}
    splits: list[str] = []
    for name, its_graph, facts in _splits(graph):
        heads, relations, tails = facts.numpy().T.tolist()
        content["head"] += map(its_graph.entities.name, heads)
        content["relation"] += map(its_graph.relations.name, relations)
        content["tail"] += map(its_graph.entities.name, tails)
        splits += [name] * len(facts)
    return pandas.DataFrame(content | ({"split": splits} if isinstance(graph, Dataset) else {}))


def _splits(graph: KnowledgeGraph | Dataset) -> list[tuple[str, KnowledgeGraph, Tensor]]:
    if isinstance(graph, KnowledgeGraph):
        return [("", graph, graph.facts)]
    splits = (graph.train, graph.valid, graph.test)
    return [(split.name, split.graph, split.facts) for split in splits]


def from_networkx(graph: "networkx.Graph[Any]", *, relation: str = "relation") -> KnowledgeGraph:
    """Builds a graph from a networkx graph; nodes without edges stay as candidates.

    Args:
        graph: any kind; an edge without direction counts in the order in which it is listed.
        relation: the edge attribute that names the relation. Without it the key of a multigraph
            does if it is text, else all edges are of one relation.
    """
    triples: list[tuple[str, str, str]] = []
    view: Any = graph.edges
    edges = view(keys=True, data=True) if graph.is_multigraph() else view(data=True)
    for head, tail, *key, data in edges:
        fallback = key[0] if key and isinstance(key[0], str) else HOMOGENEOUS_RELATION
        triples.append((str(head), str(data.get(relation, fallback)), str(tail)))
    return KnowledgeGraph.from_triples(triples, more_entities=map(str, graph.nodes))


def to_networkx(graph: KnowledgeGraph | Dataset) -> "networkx.MultiDiGraph[str]":
    """Returns a directed multigraph with an edge per fact, its relation as key and attribute.

    Raises:
        MissingPackageError: networkx is not installed.
    """
    require_package("networkx", extra=None, purpose="make a networkx graph")
    import networkx

    made: Any = networkx.MultiDiGraph()
    for name, its_graph, facts in _splits(graph):
        entities, relations = its_graph.entities.names, its_graph.relations.names
        made.add_nodes_from(entities)
        split = {"split": name} if name else {}
        made.add_edges_from(
            (entities[h], entities[t], relations[r], {"relation": relations[r]} | split)
            for h, r, t in facts.numpy().tolist()
        )
    return made


def from_pyg(
    data: Any, *, entities: Sequence[str] | None = None, relations: Sequence[str] | None = None
) -> KnowledgeGraph:
    """Builds a graph from a PyTorch Geometric ``Data``, or anything with its ``edge_index``.

    Args:
        data: ``edge_index`` (2, E), and ``edge_type`` (E) where edges are of several kinds.
        entities: names by number; by default ``data.entity_names``, else the numbers.
        relations: the same of relations.

    Raises:
        DataError: a tensor is missing or has another shape, or there are too few names.
    """
    edges: Any = getattr(data, "edge_index", None)
    if not isinstance(edges, Tensor) or edges.dim() != 2 or len(edges) != 2:
        found = f"shape {tuple(edges.shape)}" if isinstance(edges, Tensor) else type(edges).__name__
        raise DataError(f"Expected edge_index of shape (2, E), got {found}.")
    types: Any = getattr(data, "edge_type", None)
    if types is None:
        types = torch.zeros(edges.shape[1], dtype=torch.long)
        relations = relations or [HOMOGENEOUS_RELATION]
    if types.shape != edges.shape[1:]:
        raise DataError(
            f"Expected edge_type of shape ({edges.shape[1]},), got {tuple(types.shape)}."
        )
    num_nodes = max(int(edges.max()) + 1 if edges.numel() else 0, data.num_nodes or 0)
    names = _names(entities, getattr(data, "entity_names", None), num_nodes, "entity")
    num_types = int(types.max()) + 1 if types.numel() else 0
    kinds = _names(relations, getattr(data, "relation_names", None), num_types, "relation")
    facts = torch.stack([edges[0], types, edges[1]], 1).long()
    return KnowledgeGraph(names, kinds, facts[first_occurrences(facts.numpy())])


def _names(
    given: Sequence[str] | None, stored: Sequence[str] | None, number: int, kind: str
) -> Vocabulary:
    names = given or stored or [str(i) for i in range(number)]
    vocabulary = Vocabulary(names, kind=kind)
    if len(vocabulary) < max(number, len(names)):
        raise DataError(f"Expected {number:,} different {kind} names, got {len(vocabulary):,}.")
    return vocabulary


def to_pyg(graph: KnowledgeGraph | Dataset) -> "torch_geometric.data.Data":
    """Returns ``Data`` with ``edge_index`` and ``edge_type``, and the names of both.

    The facts of a data set carry their split, 0 train, 1 valid and 2 test, in ``edge_split``.

    Raises:
        MissingPackageError: torch_geometric is not installed.
        DataError: an inductive data set, whose splits have graphs of their own.
    """
    require_package("torch_geometric", extra=None, purpose="make a Data object")
    from torch_geometric.data import Data

    names, facts, split_ids = _on_one_graph(graph)
    data = Data(
        edge_index=facts[:, [0, 2]].T.contiguous(),
        edge_type=facts[:, 1].contiguous(),
        num_nodes=len(names.entities),
        entity_names=list(names.entities),
        relation_names=list(names.relations),
    )
    if split_ids is not None:
        data.edge_split = split_ids
    return data


def _on_one_graph(graph: KnowledgeGraph | Dataset) -> tuple[KnowledgeGraph, Tensor, Tensor | None]:
    """Returns the names, all facts, and of a data set the split of each fact."""
    if isinstance(graph, KnowledgeGraph):
        return graph, graph.facts, None
    if graph.is_inductive:
        raise DataError(
            "Expected a data set on one graph, got an inductive one. Convert the graph of each "
            "split by itself."
        )
    splits = (graph.train, graph.valid, graph.test)
    split_ids = [torch.full((len(split.facts),), SPLIT_IDS[split.name]) for split in splits]
    return graph.train.graph, torch.cat([split.facts for split in splits]), torch.cat(split_ids)


def from_hetero(data: "torch_geometric.data.HeteroData") -> KnowledgeGraph:
    """Builds a graph from a PyTorch Geometric ``HeteroData``; features are left aside.

    The middle of an edge type is the relation, whatever nodes it links. A node is called by its
    type's ``entity_names``, else by type and number, such as ``drug:3``. Leave out edges that only
    repeat others backwards: a graph has its inverses anyway.

    Raises:
        DataError: nodes of two types have one name, or a type has not as many names as nodes.
    """
    names: list[str] = []
    starts: dict[str, int] = {}
    for kind in data.node_types:
        number = int(data[kind].num_nodes or 0)
        own: Any = data[kind].get("entity_names") or [f"{kind}:{i}" for i in range(number)]
        if len(own) != number:
            raise DataError(f"Expected {number:,} names of type {kind!r}, got {len(own):,}.")
        starts[kind] = len(names)
        names += own
    entities = Vocabulary(names, kind="entity")
    if len(entities) < len(names):
        raise DataError(f"Expected {len(names):,} different names, got {len(entities):,}.")
    relations = Vocabulary((relation for _, relation, _ in data.edge_types), kind="relation")
    facts = [torch.zeros(0, 3, dtype=torch.long)]
    for head, relation, tail in data.edge_types:
        heads, tails = data[head, relation, tail].edge_index
        numbers = torch.full_like(heads, relations.id(relation))
        facts.append(torch.stack([heads + starts[head], numbers, tails + starts[tail]], 1))
    joined = torch.cat(facts)
    return KnowledgeGraph(entities, relations, joined[first_occurrences(joined.numpy())])


def to_hetero(
    graph: KnowledgeGraph | Dataset, *, types: Mapping[str, str] | None = None
) -> "torch_geometric.data.HeteroData":
    """Returns ``HeteroData`` with an edge type for every relation and the types that it links.

    Entities keep their order within a type, and their names as ``entity_names``. The facts of a
    data set carry their split, 0 train, 1 valid and 2 test, in ``edge_split``.

    Args:
        graph: the graph, or a data set on one graph.
        types: the type of every entity by name; by default all are of type ``entity``.

    Raises:
        MissingPackageError: torch_geometric is not installed.
        DataError: an entity has no type, or the data set is inductive.
    """
    require_package("torch_geometric", extra=None, purpose="make a HeteroData object")
    from torch_geometric.data import HeteroData

    names, facts, split_ids = _on_one_graph(graph)
    data = HeteroData()
    members: dict[str, list[str]] = {}
    types = types if types is not None else dict.fromkeys(names.entities, "entity")
    places = torch.zeros(len(names.entities), dtype=torch.long)
    for number, name in enumerate(names.entities):
        if name not in types:
            raise DataError(f"Expected a type for every entity, got none for {name!r}.")
        own = members.setdefault(types[name], [])
        places[number] = len(own)
        own.append(name)
    for kind, own in members.items():
        data[kind].num_nodes, data[kind].entity_names = len(own), own
    kinds = {kind: number for number, kind in enumerate(members)}
    kind_of = torch.tensor([kinds[types[name]] for name in names.entities], dtype=torch.long)
    edge_types = torch.stack([kind_of[facts[:, 0]], facts[:, 1], kind_of[facts[:, 2]]], 1)
    listed = list(members)
    for head, relation, tail in torch.unique(edge_types, dim=0).tolist():
        is_one = (edge_types == torch.tensor([head, relation, tail])).all(1)
        edges = data[listed[head], names.relations.name(relation), listed[tail]]
        edges.edge_index = places[facts[is_one][:, [0, 2]].T.contiguous()]
        if split_ids is not None:
            edges.edge_split = split_ids[is_one]
    return data
