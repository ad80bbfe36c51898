"""What kernels take besides plain tensors: the edges of a graph, weights, and dropout's bytes.

Weights come packed, rows of D floats in one tensor and D x D maps in another, so that a kernel
takes two addresses and its gradients are two tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Int32, UInt8
from torch import Tensor

Similarity = Literal["linear", "exponential", "random_features"]

Linear = tuple[Float[Tensor, "D D"], Float[Tensor, " D"]]  # (out x in), bias
Norm = tuple[Float[Tensor, " D"], Float[Tensor, " D"]]  # weight, bias


@dataclass(frozen=True)
class Edges:
    """The graph as kernels see it, sorted twice: by receiver to gather, by sender to scatter.

    Edges that leave one sender by one relation carry the same message. Messages are numbered by
    sender and relation, so each sender owns one run of them, and each message one run of edges.
    """

    num_entities: int
    num_relations: int
    # Edges by receiver: those of u are offsets[u] .. offsets[u + 1].
    offsets: Int32[Tensor, " V+1"]
    sender: Int32[Tensor, " E"]
    relation: Int32[Tensor, " E"]
    message: Int32[Tensor, " E"]
    # Messages by sender: those of v are sender_offsets[v] .. sender_offsets[v + 1].
    sender_offsets: Int32[Tensor, " V+1"]
    message_sender: Int32[Tensor, " M"]
    message_relation: Int32[Tensor, " M"]
    # Edges by message: those of m are message_offsets[m] .. message_offsets[m + 1].
    message_offsets: Int32[Tensor, " M+1"]
    receiver: Int32[Tensor, " E"]
    by_message: Int[Tensor, " E"]  # where each of these stands in the order by receiver

    def keep(self, kept: Bool[Tensor, " E"]) -> "Edges":
        """Returns the edges that are kept. Compaction, never a new sort: both orders stay."""
        kept_by_message = kept[self.by_message]
        before = _counts_before(kept)
        return replace(
            self,
            offsets=before[self.offsets],
            sender=self.sender[kept],
            relation=self.relation[kept],
            message=self.message[kept],
            message_offsets=_counts_before(kept_by_message)[self.message_offsets],
            receiver=self.receiver[kept_by_message],
            by_message=before[self.by_message[kept_by_message]].long(),
        )


def _counts_before(kept: Bool[Tensor, " E"]) -> Int32[Tensor, " E+1"]:
    """How many are kept before each position."""
    counts = torch.zeros(len(kept) + 1, dtype=torch.int32)
    torch.cumsum(kept, 0, dtype=torch.int32, out=counts[1:])
    return counts


class HopWeights(NamedTuple):
    """Weights of one hop's update: linear maps with ReLU between, then norm and residual or not.

    The norm is present in the released code's form and absent in the paper's; where it is present
    the hop also adds its input to its output.
    """

    rows: Float[Tensor, "K D"]  # self_weight, a bias per map, the norm's weight and bias
    maps: Float[Tensor, "N D D"]  # each (in x out)
    norm: bool

    @staticmethod
    def pack(self_weight: Tensor, linear: Sequence[Linear], norm: Norm | None) -> "HopWeights":
        """Lays weights side by side."""
        rows = [self_weight, *(bias for _, bias in linear), *(norm or ())]
        maps = [weight.t() for weight, _ in linear]
        return HopWeights(torch.stack(rows), torch.stack(maps), norm is not None)


class InputWeights(NamedTuple):
    """Weights of a stream's input: two linear maps; the first one's bias is in ``extra``."""

    rows: Float[Tensor, "K D"]  # the second map's bias, and the bonus of the head if there is one
    maps: Float[Tensor, "2 D D"]  # each (in x out)

    @staticmethod
    def pack(
        first: Float[Tensor, "D D"], second: Linear, head_bonus: Float[Tensor, " D"] | None
    ) -> "InputWeights":
        """Lays weights side by side; the bonus joins the hidden layer at the query's head."""
        weight, bias = second
        rows = [bias] if head_bonus is None else [bias, head_bonus]
        return InputWeights(torch.stack(rows), torch.stack([first.t(), weight.t()]))


class AttendWeights(NamedTuple):
    """Weights of attention, feed-forward and their norms."""

    rows: Float[Tensor, "K D"]  # biases of q and k (if any), norm, biases of both maps, norm
    maps: Float[Tensor, "N D D"]  # q and k (if any), expand, contract; each (in x out)
    similarity: Similarity
    features: Float[Tensor, "H C F"] | None  # directions of random features

    @staticmethod
    def pack(
        query_key: tuple[Linear, Linear] | None,
        attention_norm: Norm,
        feed_forward: tuple[Linear, Linear],
        output_norm: Norm,
        similarity: Similarity = "linear",
        features: Float[Tensor, "H C F"] | None = None,
    ) -> "AttendWeights":
        """Lays weights side by side; a model without attention has no q and k."""
        linear = [*(query_key or ()), *feed_forward]
        biases = [bias for _, bias in linear]
        rows = [*biases[:-2], *attention_norm, *biases[-2:], *output_norm]
        maps = torch.stack([weight.t() for weight, _ in linear])
        return AttendWeights(torch.stack(rows), maps, similarity, features)


class ScoreWeights(NamedTuple):
    """Weights of the map from an entity's last state to its score."""

    rows: Float[Tensor, "2 D"]  # the hidden layer's bias, the last map
    maps: Float[Tensor, "1 D D"]  # (in x out)
    bias: Float[Tensor, " 1"]

    @staticmethod
    def pack(
        hidden: Linear, last: tuple[Float[Tensor, "1 D"], Float[Tensor, " 1"]]
    ) -> "ScoreWeights":
        """Lays weights side by side."""
        return ScoreWeights(torch.stack([hidden[1], last[0][0]]), hidden[0].t()[None], last[1])


@dataclass(frozen=True)
class Dropout:
    """Which hidden activations stay: those whose random byte is at least ``threshold``."""

    random_bytes: UInt8[Tensor, "B V D"]
    threshold: int  # of 256: a rate of 0.1 drops 26 of 256

    @property
    def scale(self) -> float:
        """What is kept is scaled so that its mean stays."""
        return 256.0 / (256.0 - self.threshold)
