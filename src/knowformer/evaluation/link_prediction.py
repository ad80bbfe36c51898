"""AUROC and average precision of facts against sampled pairs, for graphs with one kind of edge.

NBFNet's protocol: as many negative pairs as facts, drawn uniformly from the pairs that are not
linked in any split; a pair's score is the mean of the questions from its one end and its other.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.queries.known_answers import KnownAnswers
from knowformer.seeding import generator

MAX_ROUNDS = 1000


def auroc(positives: Float[Tensor, " P"], negatives: Float[Tensor, " N"]) -> float:
    """Returns the chance that a positive scores above a negative, a tie counting one half."""
    ordered = negatives.sort().values
    below = torch.searchsorted(ordered, positives)
    not_above = torch.searchsorted(ordered, positives, right=True)
    return ((below + not_above) / 2).double().mean().item() / len(negatives)


def average_precision(positives: Float[Tensor, " P"], negatives: Float[Tensor, " N"]) -> float:
    """Returns the mean precision over the positives, each at its own score as the threshold."""
    kept_positives = _at_least(positives, positives)
    kept_negatives = _at_least(negatives, positives)
    return (kept_positives / (kept_positives + kept_negatives)).double().mean().item()


def _at_least(scores: Float[Tensor, " S"], thresholds: Float[Tensor, " P"]) -> Int[Tensor, " P"]:
    return len(scores) - torch.searchsorted(scores.sort().values, thresholds)


def sample_unlinked(split: Split, *, seed: int) -> Int[Tensor, "N 3"]:
    """Samples as many pairs that are not linked as the split has facts; fewer where few exist."""
    num_entities = len(split.graph.entities)
    known = KnownAnswers(
        split.known, num_entities=num_entities, num_relations=len(split.graph.relations)
    )
    random = generator(seed, "unlinked", split.name)
    found = torch.empty(0, 3, dtype=torch.long)
    relation = torch.zeros(1, dtype=torch.long)
    for _ in range(MAX_ROUNDS + len(split.facts)):  # a graph that is all links has no such pair
        if len(found) >= len(split.facts):
            break
        heads, tails = torch.randint(num_entities, (2, 64), generator=random)
        linked = known.mask(heads, relation.expand(64)) | known.mask(
            heads, relation.expand(64) + len(split.graph.relations)
        )
        free = (heads != tails) & ~linked[torch.arange(64), tails]
        drawn = torch.stack([heads, relation.expand(64), tails], 1)[free]
        found = torch.cat([found, drawn])
    return found[: len(split.facts)]
