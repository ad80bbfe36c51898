"""(head, relation) -> known tails, for filtering; both directions of every fact."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.graph.fact_index import BY_QUERY, FactIndex, Ids
from knowformer.graph.inverse import num_with_inverses, with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph


class KnownAnswers:
    """Known tails of every query, as sorted runs that are found by binary search."""

    def __init__(self, facts: Int[Tensor, "N 3"], *, num_entities: int, num_relations: int) -> None:
        self._num_entities = num_entities
        sizes = {"num_entities": num_entities, "num_relations": num_relations}
        self._index = FactIndex.with_inverses(facts.numpy(), BY_QUERY, **sizes)

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "KnownAnswers":
        """Returns what the facts of a graph answer, without sorting them again."""
        known = cls.__new__(cls)
        known._num_entities = len(graph.entities)
        known._index = graph.adjacency.by_query
        return known

    @classmethod
    def of_split(cls, split: Split) -> "KnownAnswers":
        """Returns what is known in a split; made once for a graph and these facts.

        The graph's own facts, which most of them are, are not sorted again.
        """
        graph, memo = split.graph, split.graph.adjacency.memo
        if split.stored_known is not None:
            return cls.of(split.stored_known)
        facts, made = memo.get(cls, (None, None))
        if facts is not split.known:
            sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
            more = _more(split.known, graph.facts)
            if more is None:
                made = cls(split.known, **sizes)
            elif not len(more):
                made = cls.of(graph)
            else:
                made = cls.of(graph).changed(added=more, removed=more[:0], **sizes)
            memo[cls] = split.known, made  # with the facts, so that no others take their place
        return made

    def changed(
        self,
        *,
        added: Int[Tensor, "A 3"],
        removed: Int[Tensor, "B 3"],
        num_entities: int,
        num_relations: int,
    ) -> "KnownAnswers":
        """Returns what is known after a change of facts, by copying; this one stays as it is.

        Args:
            added: facts; those that are known already change nothing.
            removed: facts; nor do those that are not known.
            num_entities: how many entities there are then.
            num_relations: how many relations, as named.
        """
        sizes = {"num_entities": num_entities, "num_relations": num_with_inverses(num_relations)}
        known = KnownAnswers.__new__(KnownAnswers)
        known._num_entities = num_entities
        known._index = self._index.resized(**sizes)
        come = with_inverse_facts(added[~known.holds(added)], num_relations)
        gone = with_inverse_facts(removed[known.holds(removed)], num_relations)
        known._index = known._index.changed(come.numpy(), gone.numpy())
        return known

    def facts(self, num_relations: int) -> Int[Tensor, "N 3"]:
        """Returns the facts that are known, without their inverses; sorted."""
        directed = torch.from_numpy(self._index.layout.facts(self._index.keys))
        return directed[directed[:, 1] < num_relations]

    def queries(self) -> Int[Tensor, "Q 2"]:
        """Returns the queries (head, relation) that have an answer; sorted."""
        directed = self._index.layout.facts(self._index.keys[self._index.run_starts()])
        return torch.from_numpy(directed[:, :2])

    def lookup(
        self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]
    ) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
        """Returns (row, tail) for every known answer of every query, rows in order."""
        rows, tails = self._index.members(heads.numpy(), relations.numpy())
        return torch.from_numpy(rows), torch.from_numpy(tails)

    def holds(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        """Returns True where a fact is known."""
        return torch.from_numpy(self._index.has_fact(facts.numpy()))

    @property
    def keys(self) -> Ids:
        """All that is known, for a checksum."""
        return self._index.keys

    def mask(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Bool[Tensor, "B V"]:
        """Returns True at every known answer of every query."""
        mask = torch.zeros(len(heads), self._num_entities, dtype=torch.bool)
        mask[self.lookup(heads, relations)] = True
        return mask


def _more(known: Int[Tensor, "K 3"], own: Int[Tensor, "N 3"]) -> Int[Tensor, "M 3"] | None:
    """Returns the facts that are known after those of a graph; None: it does not begin with them.

    Where both are the same place in memory, nothing is compared.
    """
    first = known[: len(own)]
    if first.data_ptr() != own.data_ptr() and not torch.equal(first, own):
        return None
    distinct: Tensor = torch.unique(known[len(own) :], dim=0)
    return distinct
