"""What tests of views share: questions to random graphs, and graphs without what is hidden."""

from dataclasses import fields

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from knowformer.graph.inverse import inverse_of, with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import Edges
from knowformer.views.queries import HiddenTargets, Hide, Query, queries_of

Asked = tuple[Tensor, Tensor, HiddenTargets | None]


def ask(graph: KnowledgeGraph, seed: int, hide: Hide | None, count: int = 6) -> Asked:
    """Questions about the graph's facts, some of their answers hidden, and a few false ones."""
    draw = torch.Generator().manual_seed(seed)
    facts = with_inverse_facts(graph.facts, len(graph.relations))
    heads, relations, _ = facts[torch.randint(len(facts), (count,), generator=draw)].unbind(1)
    if hide is None:
        return heads, relations, None
    rows, targets = [], []
    for row, (head, relation) in enumerate(zip(heads, relations, strict=True)):
        answers = facts[(facts[:, 0] == head) & (facts[:, 1] == relation), 2]
        strangers = torch.randint(len(graph.entities), (2,), generator=draw)
        own = torch.cat([answers[torch.rand(len(answers), generator=draw) < 0.7], strangers])
        rows.append(torch.full_like(own, row))
        targets.append(own)
    order = torch.randperm(sum(map(len, rows)), generator=draw)
    hidden = HiddenTargets(torch.cat(rows)[order], torch.cat(targets)[order], hide)
    return heads, relations, hidden


def queries(graph: KnowledgeGraph, asked: Asked) -> list[Query]:
    return queries_of(*asked, len(graph.relations))


def without_hidden(graph: KnowledgeGraph, query: Query, hide: Hide) -> KnowledgeGraph:
    """The graph in which the facts that a query must not see never were."""
    num_relations, targets = len(graph.relations), set(query.targets.tolist())
    kept = []
    for head, relation, tail in graph.facts.tolist():
        is_link = (head == query.head and tail in targets) or (
            tail == query.head and head in targets
        )
        is_fact = (head, relation) == (query.head, query.relation) and tail in targets
        inverse = inverse_of(relation, num_relations)
        is_fact |= (tail, inverse) == (query.head, query.relation) and head in targets
        if not (is_link if hide == "links" else is_fact):
            kept.append((head, relation, tail))
    facts = torch.tensor(kept, dtype=torch.long).reshape(-1, 3)
    return KnowledgeGraph(graph.entities, graph.relations, facts)


def same_edges(one: Edges, other: Edges) -> bool:
    def values(edges: Edges) -> list[object]:
        found = [getattr(edges, field.name) for field in fields(Edges)]
        return [(x.dtype, x.tolist()) if isinstance(x, Tensor) else x for x in found]

    return values(one) == values(other)


def ranks_of(graph: KnowledgeGraph) -> npt.NDArray[np.int32]:
    """Of every entity, by key."""
    keys = graph.entity_keys.tolist()
    return np.array([sorted(keys).index(key) for key in keys], dtype=np.int32)
