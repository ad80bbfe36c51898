"""Pairs of entities that no known fact links: what links are told apart from."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from knowformer.graph.inverse import inverse_of
from knowformer.queries.known_answers import KnownAnswers

MOST_ROUNDS = 100  # a pair that is still linked then belongs to a nearly complete graph


def sample_unlinked(
    known: KnownAnswers,
    relations: Int[Tensor, " N"],
    *,
    num_entities: int,
    num_relations: int,
    generator: torch.Generator,
) -> Int[Tensor, "n 3"]:
    """Samples a fact that is not known for each relation, both ends uniformly.

    Neither direction of it is known, and its ends differ. A relation that links nearly all pairs
    may go without: then fewer facts are returned.

    Args:
        known: the facts that links are known from.
        relations: of the facts to sample, inverse ones too.
        num_entities: how many entities there are.
        num_relations: how many relations are named.
        generator: draws the ends.
    """
    opposite = inverse_of(relations, num_relations)
    heads, tails = torch.randint(num_entities, (2, len(relations)), generator=generator)

    def are_linked() -> Bool[Tensor, " N"]:
        linked = heads == tails
        for relation in (relations, opposite):
            linked |= known.holds(torch.stack([heads, relation, tails], 1))
        return linked

    for _ in range(MOST_ROUNDS):
        linked = are_linked()
        if not linked.any():
            break
        ends = torch.randint(num_entities, (2, int(linked.sum())), generator=generator)
        heads[linked], tails[linked] = ends
    return torch.stack([heads, relations, tails], 1)[~are_linked()]
