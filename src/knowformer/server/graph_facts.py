"""Facts of a snapshot as they are shown: by entity, by relation, with readable names."""

import numpy as np
import torch

from knowformer.graph.fact_index import Ids
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.live.snapshots import Snapshot
from knowformer.server.schemas.fields import NamedFact, labels_of
from knowformer.server.schemas.graph import EntityResponse, FactOfEntity, RelationOfEntity
from knowformer.server.settings import MAX_PAGE


def named_fact(snapshot: Snapshot, head: str, relation: str, tail: str) -> NamedFact:
    """Returns a fact with the readable names that it has."""
    labels = labels_of((head, relation, tail), snapshot.reasoner.labels)
    return NamedFact(head=head, relation=relation, tail=tail, **labels)


def num_facts(graph: KnowledgeGraph, entity: int) -> int:
    """Returns in how many facts an entity occurs; one with itself counts once for each side."""
    start, stop = _run(graph, entity)
    return stop - start


def most_facts(graph: KnowledgeGraph, limit: int) -> list[int]:
    """Returns the entities with most facts, counted once for a graph."""
    memo = graph.adjacency.memo
    if most_facts not in memo:
        degrees = np.diff(graph.adjacency.by_query.offsets(len(graph.entities)))
        memo[most_facts] = np.argsort(-degrees, kind="stable")[:MAX_PAGE].tolist()
    return memo[most_facts][:limit]


def facts_by_relation(graph: KnowledgeGraph) -> Ids:
    """Returns how many facts each relation has, counted once for a graph."""
    memo = graph.adjacency.memo
    if facts_by_relation not in memo:
        every = graph.adjacency.by_query.column("relation")
        counts = np.bincount(every, minlength=2 * len(graph.relations))
        memo[facts_by_relation] = counts[: len(graph.relations)]
    return memo[facts_by_relation]


def describe_entity(
    snapshot: Snapshot, entity: int, *, relation: int | None, limit: int, offset: int
) -> EntityResponse:
    """Returns a page of an entity's facts, and how many it has of each relation."""
    graph, labels = snapshot.graph, snapshot.reasoner.labels
    number = len(graph.relations)
    start, stop = _run(graph, entity)
    index = graph.adjacency.by_query
    directed = index.layout.facts(index.keys[start:stop])
    counts = np.bincount(directed[:, 1], minlength=2 * number)
    if relation is not None:
        sides = (relation, inverse_of(relation, number))
        directed = directed[np.isin(directed[:, 1], sides)]
    shown = directed[offset : offset + limit]
    backwards = shown[:, 1] >= number
    facts = np.where(
        backwards[:, None],
        np.stack([shown[:, 2], shown[:, 1] - number, shown[:, 0]], 1),
        shown,
    )
    live = snapshot.are_live(torch.from_numpy(facts)).tolist()
    entities, relations = graph.entities, graph.relations.names
    named = graph.relations.name
    names = [(entities.name(h), named(r), entities.name(t)) for h, r, t in facts.tolist()]
    name = entities.name(entity)
    return EntityResponse(
        name=name,
        label=labels.entities.get(name),
        type=None,
        total=len(directed),
        items=[
            FactOfEntity(
                **named_fact(snapshot, *fact).model_dump(), source="live" if new else "graph"
            )
            for fact, new in zip(names, live, strict=True)
        ],
        relations=[
            RelationOfEntity(
                relation=relations[each],
                label=labels.relations.get(relations[each]),
                as_head=int(counts[each]),
                as_tail=int(counts[number + each]),
            )
            for each in np.flatnonzero(counts[:number] + counts[number:]).tolist()
        ],
        snapshot=snapshot.version,
    )


def _run(graph: KnowledgeGraph, entity: int) -> tuple[int, int]:
    """Returns where the facts and inverse facts that start at an entity stand in their index."""
    index = graph.adjacency.by_query
    shift = index.layout.shift("head")
    start, stop = np.searchsorted(index.keys, [entity << shift, (entity + 1) << shift])
    return int(start), int(stop)
