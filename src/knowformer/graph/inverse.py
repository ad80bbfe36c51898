"""The only file that knows how inverse relations are numbered.

Relation r in [0, N) of a vocabulary of N relations has its inverse at r + N, so a table over all
relations has 2N rows: first the relations as named, then their inverses in the same order.
"""

import torch
from jaxtyping import Int
from torch import Tensor


def num_with_inverses(num_relations: int) -> int:
    """Returns R, the number of relations once each has its inverse."""
    return 2 * num_relations


def inverse_of(relations: Int[Tensor, "*shape"], num_relations: int) -> Int[Tensor, "*shape"]:
    """Returns the inverse of each relation id; applied twice it is the identity."""
    return (relations + num_relations) % num_with_inverses(num_relations)


def is_inverse(relations: Int[Tensor, "*shape"], num_relations: int) -> Tensor:
    """Returns True where a relation id is an inverse, that is, where it asks for a head."""
    return relations >= num_relations


def base_relation(relations: Int[Tensor, "*shape"], num_relations: int) -> Int[Tensor, "*shape"]:
    """Returns the named relation that each relation id is, or is the inverse of."""
    return relations % num_relations


def inverse_facts(facts: Int[Tensor, "N 3"], num_relations: int) -> Int[Tensor, "N 3"]:
    """Returns every fact r(h, t) read backwards: its inverse relation from t to h."""
    heads, relations, tails = facts.unbind(1)
    return torch.stack([tails, inverse_of(relations, num_relations), heads], 1)


def with_inverse_facts(facts: Int[Tensor, "N 3"], num_relations: int) -> Int[Tensor, "M 3"]:
    """Returns the facts followed by their inverses."""
    return torch.cat([facts, inverse_facts(facts, num_relations)])
