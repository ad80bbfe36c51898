"""AUROC and average precision of facts against sampled pairs, for graphs with one relation.

NBFNet's protocol: as many negative pairs as facts, drawn uniformly from the pairs that are not
linked in any split; a pair's score is the mean over its two directions.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.graph.inverse import inverse_of
from knowformer.queries.known_answers import KnownAnswers
from knowformer.seeding import generator

MAX_ROUNDS = 1000


def auroc(positives: Float[Tensor, " P"], negatives: Float[Tensor, " N"]) -> float:
    """Returns the probability that a positive scores above a negative; a tie counts one half."""
    ordered = negatives.sort().values
    below = torch.searchsorted(ordered, positives)
    not_above = torch.searchsorted(ordered, positives, right=True)
    return ((below + not_above) / 2).double().mean().item() / len(negatives)


def average_precision(positives: Float[Tensor, " P"], negatives: Float[Tensor, " N"]) -> float:
    """Returns the mean, over positives, of the precision with their score as the threshold."""
    true_positives = _at_least(positives, positives)
    false_positives = _at_least(negatives, positives)
    return (true_positives / (true_positives + false_positives)).double().mean().item()


def _at_least(scores: Float[Tensor, " S"], thresholds: Float[Tensor, " P"]) -> Int[Tensor, " P"]:
    """Returns how many scores reach each threshold."""
    return len(scores) - torch.searchsorted(scores.sort().values, thresholds)


def sample_unlinked(split: Split, *, seed: int) -> Int[Tensor, "N 3"]:
    """Samples as many unlinked pairs as the split has facts, or fewer if there are not enough."""
    num_entities = len(split.graph.entities)
    known = KnownAnswers(
        split.known, num_entities=num_entities, num_relations=len(split.graph.relations)
    )
    random = generator(seed, "unlinked", split.name)
    unlinked = torch.empty(0, 3, dtype=torch.long)
    relation = torch.zeros(1, dtype=torch.long)
    for _ in range(MAX_ROUNDS + len(split.facts)):  # a complete graph has no such pair
        if len(unlinked) >= len(split.facts):
            break
        heads, tails = torch.randint(num_entities, (2, 64), generator=random)
        backwards = inverse_of(relation, len(split.graph.relations)).expand(64)
        linked = known.mask(heads, relation.expand(64)) | known.mask(heads, backwards)
        free = (heads != tails) & ~linked[torch.arange(64), tails]
        drawn = torch.stack([heads, relation.expand(64), tails], 1)[free]
        unlinked = torch.cat([unlinked, drawn])
    return unlinked[: len(split.facts)]
