"""MR, MRR and Hits@k from ranks."""

from jaxtyping import Float
from torch import Tensor

Metrics = dict[str, float]

HITS_AT = (1, 3, 10)


def rank_metrics(ranks: Float[Tensor, " F"]) -> Metrics:
    """Returns mrr, mr and hits@k of these ranks; all zero if there are none."""
    if len(ranks) == 0:
        return {"mrr": 0.0, "mr": 0.0, **{f"hits@{k}": 0.0 for k in HITS_AT}}
    ranks = ranks.double()
    return {
        "mrr": (1.0 / ranks).mean().item(),
        "mr": ranks.mean().item(),
        **{f"hits@{k}": (ranks <= k).double().mean().item() for k in HITS_AT},
    }
