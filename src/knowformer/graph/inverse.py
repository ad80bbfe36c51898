"""The only file that knows how inverse relations are numbered.

Relation r in [0, N) of a vocabulary of N relations has its inverse at r + N, so a table over all
relations has 2N rows: first the relations as named, then their inverses in the same order. What
takes ids takes one as a plain integer or many as a tensor.
"""

from typing import Literal, NamedTuple, TypeVar, overload

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.vocabulary import Vocabulary

Id = TypeVar("Id", int, Tensor)

Side = Literal["head", "tail"]


class AskedRelation(NamedTuple):
    """A relation id of a query in words."""

    name: str
    side: Side
    """What the query asks for: through an inverse, the head of a fact."""


def num_with_inverses(num_relations: int) -> int:
    """Returns R, the number of relations once each has its inverse."""
    return 2 * num_relations


def inverse_of(relations: Id, num_relations: int) -> Id:
    """Returns the inverse of each relation id; applied twice it is the identity."""
    return (relations + num_relations) % num_with_inverses(num_relations)


@overload
def is_inverse(relations: int, num_relations: int) -> bool: ...
@overload
def is_inverse(relations: Tensor, num_relations: int) -> Tensor: ...
def is_inverse(relations: int | Tensor, num_relations: int) -> bool | Tensor:
    """Returns True where a relation id is an inverse, that is, where it asks for a head."""
    return relations >= num_relations


def base_relation(relations: Id, num_relations: int) -> Id:
    """Returns the named relation that each relation id is, or is the inverse of."""
    return relations % num_relations


def asked_relation(relation: int, relations: Vocabulary) -> AskedRelation:
    """Returns the name of a relation id, and the side of a fact that it asks for."""
    side: Side = "head" if is_inverse(relation, len(relations)) else "tail"
    return AskedRelation(relations.names[base_relation(relation, len(relations))], side)


def inverse_facts(facts: Int[Tensor, "N 3"], num_relations: int) -> Int[Tensor, "N 3"]:
    """Returns every fact r(h, t) read backwards: its inverse relation from t to h."""
    heads, relations, tails = facts.unbind(1)
    return torch.stack([tails, inverse_of(relations, num_relations), heads], 1)


def with_inverse_facts(facts: Int[Tensor, "N 3"], num_relations: int) -> Int[Tensor, "M 3"]:
    """Returns the facts followed by their inverses."""
    return torch.cat([facts, inverse_facts(facts, num_relations)])
