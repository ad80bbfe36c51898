"""Views in plain Python: what an extraction has to find, said as directly as possible.

Whole numbers throughout, so the compiled extraction agrees to the last unit.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import torch

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.inverse import is_inverse
from knowformer.kernels.interface import Edges
from knowformer.views.extracted import FOREMOST, Entities, Extracted, Scored
from knowformer.views.queries import Query
from knowformer.views.settings import Rules

Edge = tuple[int, int, int]  # sender, relation, receiver


class ReferenceExtraction:
    """Extracts views of one graph; each takes time in proportion to all of its edges."""

    def __init__(self, adjacency: Adjacency, ranks: Entities, rules: Rules) -> None:
        self._num_relations = adjacency.num_relations
        self._ranks = ranks
        self._rules = rules
        columns = (adjacency.sender, adjacency.relation, adjacency.receiver)
        self._edges: list[Edge] = list(zip(*(c.tolist() for c in columns), strict=True))

    def extract(self, queries: Sequence[Query], *, outside: bool) -> Extracted:
        """Returns the views of queries, and on request what is outside of them."""
        members: list[Entities] = []
        edges: list[Edges] = []
        others: list[Scored] = []
        for query in queries:
            visible = [edge for edge in self._edges if not is_hidden(query, edge)]
            chosen, rest = self._choose(query, visible, outside=outside)
            members.append(chosen)
            edges.append(induced_edges(chosen, visible, self._num_relations))
            others.append(rest)
        return Extracted(members, Edges.join(edges), others)

    def _choose(
        self, query: Query, visible: list[Edge], *, outside: bool
    ) -> tuple[Entities, Scored]:
        if self._rules.size >= len(self._ranks):
            return np.arange(len(self._ranks), dtype=np.int32), Scored.nothing()
        scores = Counter(pagerank(query.head, visible, self._rules))
        tails = Counter(tail for _, relation, tail in visible if relation == query.relation)
        for tail, facts in tails.items():
            scores[tail] += self._rules.prior // tails.total() * facts
        scores[query.head] = FOREMOST
        found = Scored(np.array([*scores], dtype=np.int32), np.array([*scores.values()]))
        return found.choose(self._rules.size, self._ranks, outside=outside)


def is_hidden(query: Query, edge: Edge) -> bool:
    """Whether a query must not see an edge."""
    sender, relation, receiver = edge
    if len(query.edges):
        return [sender, relation, receiver] in query.edges.tolist()
    if query.hides_links:
        ends = {sender, receiver}
        return any(ends == {query.head, target} for target in query.targets.tolist())
    if relation == query.inverse:
        sender, relation, receiver = receiver, query.relation, sender
    return (sender, relation) == (query.head, query.relation) and receiver in query.targets


def pagerank(head: int, edges: list[Edge], rules: Rules) -> dict[int, int]:
    """Returns the personalised PageRank of the entities that mass from the head reaches.

    Forward push: the head sends first. An entity that sends keeps a part of the mass it holds for
    good, and the rest goes in equal shares along its edges; those who hold enough then for their
    own edges send in the next round. In the end an entity is given of what it holds what it would
    keep.
    """
    receivers: defaultdict[int, list[int]] = defaultdict(list)
    for sender, _, receiver in edges:
        receivers[sender].append(receiver)
    kept, held, senders = Counter[int](), Counter({head: rules.mass}), {head}
    while senders:
        sent = Counter[int]()
        for entity in senders:
            mass, degree = held.pop(entity), len(receivers[entity])
            share = mass * rules.alpha // (rules.parts * degree) if degree else 0
            kept[entity] += mass - share * degree
            if share:
                sent.update({each: share * n for each, n in Counter(receivers[entity]).items()})
        held.update(sent)
        senders = {each for each in sent if held[each] >= rules.tolerance * len(receivers[each])}
    for entity, mass in held.items():
        kept[entity] += mass * (rules.parts - rules.alpha) // rules.parts
    return kept


def induced_edges(members: Entities, edges: list[Edge], num_relations: int) -> Edges:
    """Returns the edges among members, whose numbers are their places."""
    places = {entity: place for place, entity in enumerate(members.tolist())}
    facts = [
        (places[sender], relation, places[receiver])
        for sender, relation, receiver in edges
        if sender in places and receiver in places and not is_inverse(relation, num_relations)
    ]
    among = Adjacency(
        torch.tensor(facts, dtype=torch.long).reshape(-1, 3),
        num_entities=len(members),
        num_relations=num_relations,
    )
    return among.edges
