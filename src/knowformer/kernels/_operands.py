"""What kernels take besides plain tensors: the edges of a graph and the weights of a hop."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Edges:
    """The graph as kernels see it: edges sorted by receiver, so each receiver owns one run of them.

    Edges that leave one sender by one relation carry the same message; ``message`` says which.
    """

    num_entities: int
    num_relations: int
    offsets: Int[Tensor, " V+1"]  # edges of receiver u are offsets[u] .. offsets[u + 1]
    message: Int[Tensor, " E"]  # which message an edge carries
    message_sender: Int[Tensor, " M"]
    message_relation: Int[Tensor, " M"]

    def keep(self, kept: Bool[Tensor, " E"]) -> "Edges":
        """Returns the edges that are kept. Compaction, never a new sort: the order stays."""
        before = torch.zeros(len(kept) + 1, dtype=torch.long)
        torch.cumsum(kept, 0, out=before[1:])
        return replace(self, offsets=before[self.offsets], message=self.message[kept])


@dataclass(frozen=True)
class HopWeights:
    """Weights of one hop's update: linear maps with ReLU between, then norm and residual or not.

    The norm is present in the released code's form and absent in the paper's; where it is present
    the hop also adds its input to its output.
    """

    self_weight: Float[Tensor, " D"]
    linear: tuple[tuple[Float[Tensor, "D D"], Float[Tensor, " D"]], ...]  # (out x in, bias)
    norm: tuple[Float[Tensor, " D"], Float[Tensor, " D"]] | None
