"""Selection: which validated weights are the best checkpoint.

The one-standard-error rule: validation MRR fluctuates by more than its trend, so the highest value
is often luck. A checkpoint is the best so far unless its reciprocal ranks, paired fact by fact with
those of the record, are lower by more than one standard error of the mean difference. The latest of
checkpoints that cannot be distinguished wins: it has trained the longest. Runs that tell links from
unlinked pairs are selected by AUROC in the same way: its mean is over facts too.
"""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.evaluation.metrics import rank_metrics
from knowformer.training.checkpoint import Counters


class Selection:
    """The best checkpoint so far; patience counts validations since the record in the counters."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.best_weights: dict[str, Tensor] = {}

    def add(
        self,
        ranks: Float[Tensor, " F"],
        weights: Mapping[str, Tensor],
        *,
        separations: Float[Tensor, " P"] | None = None,
    ) -> bool:
        """Takes a validation and returns whether its weights are the best checkpoint.

        Args:
            ranks: realistic ranks of the validation facts, the same facts each time.
            weights: the weights that were validated; copied if they are the best.
            separations: for each fact the share of unlinked pairs that score lower, where AUROC,
                their mean, selects the weights; MRR does if there are none.
        """
        counters, reciprocal = self._counters, 1.0 / ranks
        mrr = rank_metrics(ranks)["mrr"]
        counters.validated_step = counters.step
        values, record = reciprocal, counters.record_reciprocal_ranks
        is_record = mrr > counters.record_mrr
        if separations is not None:
            values, record = separations, counters.record_separations
            is_record = not record or values.mean().item() > sum(record) / len(record)
        is_best = is_record or not is_clearly_worse(
            values, torch.tensor(record, dtype=torch.double)
        )
        if is_record:
            counters.record_mrr = mrr
            counters.record_reciprocal_ranks = reciprocal.tolist()
            counters.record_separations = [] if separations is None else separations.tolist()
            counters.validations_since_record = 0
        else:
            counters.validations_since_record += 1
        if is_best:
            counters.best_mrr, counters.best_step = mrr, counters.step
            self.best_weights = {name: value.clone() for name, value in weights.items()}
        return is_best


def is_clearly_worse(values: Float[Tensor, " F"], record: Float[Tensor, " F"]) -> bool:
    """Returns whether the mean is below the record's by more than one standard error."""
    gaps = record - values
    if len(gaps) < 2:
        return gaps.sum().item() > 0
    return gaps.mean().item() > gaps.std().item() / math.sqrt(len(gaps))
