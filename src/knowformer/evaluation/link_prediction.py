"""AUROC and average precision of facts against sampled pairs, for graphs with one relation.

NBFNet's protocol: as many negative pairs as facts, drawn uniformly from the pairs that are not
linked in any split; a pair's score is the mean over its two directions.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.graph.inverse import with_inverse_facts
from knowformer.queries.batches import evaluation_batches
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.unlinked import sample_unlinked
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import generator

BATCH_SIZE = 128


def separations(
    positives: Float[Tensor, " P"], negatives: Float[Tensor, " N"]
) -> Float[Tensor, " P"]:
    """Returns the share of negatives below each positive; a tie counts one half."""
    ordered = negatives.sort().values
    below = torch.searchsorted(ordered, positives)
    not_above = torch.searchsorted(ordered, positives, right=True)
    return (below + not_above).double() / (2 * len(negatives))


def auroc(positives: Float[Tensor, " P"], negatives: Float[Tensor, " N"]) -> float:
    """Returns the probability that a positive scores above a negative; a tie counts one half."""
    return separations(positives, negatives).mean().item()


def average_precision(positives: Float[Tensor, " P"], negatives: Float[Tensor, " N"]) -> float:
    """Returns the mean, over positives, of the precision with their score as the threshold."""
    true_positives = _at_least(positives, positives)
    false_positives = _at_least(negatives, positives)
    return (true_positives / (true_positives + false_positives)).double().mean().item()


def _at_least(scores: Float[Tensor, " S"], thresholds: Float[Tensor, " P"]) -> Int[Tensor, " P"]:
    """Returns how many scores reach each threshold."""
    return len(scores) - torch.searchsorted(scores.sort().values, thresholds)


def unlinked_pairs(split: Split, *, seed: int) -> Int[Tensor, "N 3"]:
    """Samples as many unlinked pairs as the split has facts, or fewer if there are not enough."""
    num_entities, num_relations = len(split.graph.entities), len(split.graph.relations)
    return sample_unlinked(
        KnownAnswers.of_split(split),
        split.facts[:, 1],
        num_entities=num_entities,
        num_relations=num_relations,
        generator=generator(seed, "unlinked", split.name),
    )


def score_links(
    scorer: Scorer, split: Split, *, seed: int
) -> tuple[Float[Tensor, " P"], Float[Tensor, " N"]]:
    """Returns the scores of the split's facts and of unlinked pairs, means of both directions."""
    num_relations = len(split.graph.relations)
    pairs = torch.cat([split.facts, unlinked_pairs(split, seed=seed)])
    directed = with_inverse_facts(pairs, num_relations)
    of_direction = torch.zeros(len(directed))
    for batch, positions in evaluation_batches(directed, num_relations, BATCH_SIZE):
        of_batch = scorer.score(batch.heads, batch.relations)
        of_direction[positions] = of_batch.at(batch.rows, batch.tails)
    scores = of_direction.view(2, -1).mean(0)
    return scores[: len(split.facts)], scores[len(split.facts) :]


def predict_links(scorer: Scorer, split: Split, *, seed: int) -> dict[str, float] | None:
    """Returns AUROC, average precision and the number of negatives.

    None where there are several relations, or no unlinked pair.
    """
    if len(split.graph.relations) != 1:
        return None
    positives, negatives = score_links(scorer, split, seed=seed)
    if len(negatives) == 0:
        return None
    return {
        "auroc": auroc(positives, negatives),
        "average_precision": average_precision(positives, negatives),
        "num_negatives": len(negatives),
    }
