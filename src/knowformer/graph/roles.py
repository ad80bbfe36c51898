"""Roles: the relations that an entity takes part in, and at which side; what kind of entity it is.

A role is the id of a relation whose facts start at the entity: that of r where it is a head of r,
that of the inverse of r where it is a tail. Entities with like roles are of a kind, so the kinds
that a relation links are known from the facts alone, in a graph that names no types.
"""

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.inverse import num_with_inverses

CHUNK = 4096  # entities that are counted at once
KIND = 1.0  # facts of an entity's own that weigh as much as what its kind has


class Roles:
    """How many facts every entity has in every role, and what entities of its kind have."""

    def __init__(self, adjacency: Adjacency) -> None:
        """Counts; ``roles_of`` does it once for a graph."""
        lists = adjacency.lists
        self.num_entities = adjacency.num_entities
        self.num_relations = adjacency.num_relations
        self.num_roles = num_with_inverses(adjacency.num_relations)
        # The facts of an entity in one role are the edges of one of its messages.
        self._role, self._offsets = lists.message_relation, lists.sender_offsets
        self._bounds = lists.message_offsets

    def entities(self, role: int) -> Int[np.ndarray, " N"]:
        """Returns the entities in a role."""
        messages = np.flatnonzero(self._role == role)
        return np.searchsorted(self._offsets, messages, side="right") - 1

    def log_share(self, entity: int, *, backwards: bool = False) -> Float[np.ndarray, " N"]:
        """Returns the log of each named relation's share in the facts that an entity is head of.

        What entities in its roles have counts as if it were one fact more. So a relation that no
        entity of its kind has gets next to nothing.

        Args:
            entity: the entity.
            backwards: of the facts that it is the tail of.
        """
        side = slice(self.num_relations, None) if backwards else slice(self.num_relations)
        own = self._table(entity, entity + 1)[0]
        roles = np.flatnonzero(own)
        kind = self._shares_by_role[roles].mean(0) if len(roles) else self._shares
        return np.log((own[side] + KIND * kind[side]) / (own[side].sum() + KIND))

    @property
    def log_prior(self) -> Float[np.ndarray, " N"]:
        """The log of each named relation's share in all facts."""
        return np.log(self._shares[: self.num_relations])

    @cached_property
    def _shares(self) -> Float[np.ndarray, " R"]:
        """The share of each role in all facts, as heads and as tails; none is zero."""
        sizes = np.diff(self._bounds)
        counts = np.bincount(self._role, weights=sizes, minlength=self.num_roles)
        return _by_side(counts + 1.0)

    @cached_property
    def _shares_by_role(self) -> Float[np.ndarray, "R R"]:
        """Row b: the share of each role in the facts of the entities that are in role b.

        One fact more is shared out as all facts are, so that none is zero.
        """
        counts = np.zeros((self.num_roles, self.num_roles))
        for first in range(0, self.num_entities, CHUNK):
            table = self._table(first, min(first + CHUNK, self.num_entities))
            counts += (table > 0).astype(np.float64).T @ table  # whole numbers: exact in any order
        return _by_side(counts + self._shares)

    def _table(self, first: int, last: int) -> Float[np.ndarray, "E R"]:
        """Returns how many facts each of a run of entities has in each role."""
        table = np.zeros((last - first, self.num_roles))
        bounds = self._offsets[first : last + 1]
        entity = np.repeat(np.arange(last - first), np.diff(bounds))
        counts = np.diff(self._bounds[bounds[0] : bounds[-1] + 1])
        table[entity, self._role[bounds[0] : bounds[-1]]] = counts
        return table


def roles_of(adjacency: Adjacency) -> Roles:
    """Returns the roles in a graph, counted once and kept with its edges."""
    if Roles not in adjacency.memo:
        adjacency.memo[Roles] = Roles(adjacency)
    return adjacency.memo[Roles]


def _by_side(counts: Float[np.ndarray, "*rows R"]) -> Float[np.ndarray, "*rows R"]:
    """Returns shares of the roles as heads, and of those as tails."""
    sides = np.split(counts, 2, axis=-1)
    return np.concatenate([side / side.sum(-1, keepdims=True) for side in sides], -1)
