"""Losses, as pure functions of scores: cross-entropy, self-adversarial binary, and of pairs."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus


def cross_entropy_loss(
    scores: Float[Tensor, "B V"],
    known: Bool[Tensor, "B V"],
    rows: Int[Tensor, " F"],
    tails: Int[Tensor, " F"],
    *,
    num_facts: int,
) -> Float[Tensor, ""]:
    """Mean over facts of -log softmax of the answer against all but the known answers.

    Other answers of the same query do not compete with it.
    """
    negatives = scores.masked_fill(known, -torch.inf).logsumexp(1)[rows]
    answers = scores[rows, tails]
    return (torch.logaddexp(answers, negatives) - answers).sum() / num_facts


def binary_loss(
    scores: Float[Tensor, "B V"],
    known: Bool[Tensor, "B V"],
    rows: Int[Tensor, " F"],
    tails: Int[Tensor, " F"],
    *,
    num_queries: int,
    negatives: Int[Tensor, "B N"],
    adversarial_temperature: float,
) -> Float[Tensor, ""]:
    """Mean over queries of mean -log sigmoid(answer) plus weighted -log(1 - sigmoid(negative)).

    Weights of a query's negatives add up to one: softmax(score / temperature), without gradient
    (Sun et al., 2019), or all equal at temperature 0.
    """
    counts = torch.bincount(rows, minlength=len(scores)).clamp(min=1)
    positive = (softplus(-scores[rows, tails]) / counts[rows]).sum() / num_queries
    negative_scores = scores.gather(1, negatives)
    logits = torch.zeros_like(negative_scores)
    if adversarial_temperature > 0:
        logits = negative_scores.detach() / adversarial_temperature
    # Where every entity is a known answer, so are the negatives: they get no weight.
    logits = logits.masked_fill(known.gather(1, negatives), -torch.inf)
    weights = logits.softmax(1).nan_to_num(0.0)
    return positive + (weights * softplus(negative_scores)).sum() / num_queries


def pair_loss(
    scores: Float[Tensor, "B V"],
    known: Bool[Tensor, "B V"],
    rows: Int[Tensor, " F"],
    tails: Int[Tensor, " F"],
    *,
    num_pairs: int,
) -> Float[Tensor, ""]:
    """Mean over pairs of -log sigmoid(score) where a fact links them, of the negated score else."""
    of_pairs = scores[rows, tails]
    signs = torch.where(known[rows, tails], -1.0, 1.0)
    return softplus(signs * of_pairs).sum() / num_pairs
