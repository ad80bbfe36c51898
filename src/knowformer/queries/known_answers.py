"""(head, relation) -> known tails, for filtering; both directions of every fact."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.graph.fact_index import BY_QUERY, FactIndex
from knowformer.graph.inverse import num_with_inverses, with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph


class KnownAnswers:
    """Known tails of every query, as sorted runs that are found by binary search."""

    def __init__(self, facts: Int[Tensor, "N 3"], *, num_entities: int, num_relations: int) -> None:
        self._num_entities = num_entities
        self._index = FactIndex.of(
            with_inverse_facts(facts, num_relations).numpy(),
            BY_QUERY,
            num_entities=num_entities,
            num_relations=num_with_inverses(num_relations),
        )

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "KnownAnswers":
        """Returns what the facts of a graph answer, without sorting them again."""
        known = cls.__new__(cls)
        known._num_entities = len(graph.entities)
        known._index = graph.adjacency.by_query
        return known

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

    def lookup(
        self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]
    ) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
        """Returns (row, tail) for every known answer of every query, rows in order."""
        rows, tails = self._index.members(heads.numpy(), relations.numpy())
        return torch.from_numpy(rows), torch.from_numpy(tails)

    def holds(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        """Returns True where a fact is known."""
        return torch.from_numpy(self._index.has_fact(facts.numpy()))

    def to_bytes(self) -> bytes:
        """Returns all that is known, for a checksum."""
        return self._index.keys.tobytes()

    def mask(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Bool[Tensor, "B V"]:
        """Returns True at every known answer of every query."""
        mask = torch.zeros(len(heads), self._num_entities, dtype=torch.bool)
        mask[self.lookup(heads, relations)] = True
        return mask
