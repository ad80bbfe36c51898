"""FactList: facts in order of first appearance, that grow without being copied each time."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.graph.fact_index import KeyLayout

MANY_CHANGES = 100
MOST_CHANGES = 1 / 16  # of the facts; when both are passed, the list is written out


@dataclass(frozen=True)
class FactList:
    """A list that others share, without what was removed from it, and what was added since."""

    written: Int[Tensor, "N 3"]
    removed: Int[Tensor, "A 3"]
    added: Int[Tensor, "B 3"]

    @classmethod
    def of(cls, facts: Int[Tensor, "N 3"]) -> "FactList":
        """Starts a list."""
        return cls(facts, facts[:0], facts[:0])

    @cached_property
    def facts(self) -> Int[Tensor, "M 3"]:
        """The list, written out when it is first asked for."""
        if not len(self.removed) + len(self.added):
            return self.written
        return torch.cat([_without(self.written, self.removed), self.added])

    def changed(self, added: Int[Tensor, "A 3"], removed: Int[Tensor, "B 3"]) -> "FactList":
        """Returns the list without the facts that go and with those that come at its end."""
        few = max(MANY_CHANGES, MOST_CHANGES * len(self.written))
        if "facts" in self.__dict__ or len(self.removed) + len(self.added) > few:
            return FactList(self.facts, removed, added)
        gone = _without(removed, self.added)  # what came and went was never written
        left = _without(self.added, removed)
        return FactList(self.written, torch.cat([self.removed, gone]), torch.cat([left, added]))


def _without(facts: Int[Tensor, "N 3"], removed: Int[Tensor, "A 3"]) -> Int[Tensor, "M 3"]:
    """The facts that are not among those removed."""
    if not len(facts) or not len(removed):
        return facts
    layout = KeyLayout.around(facts.numpy(), removed.numpy())
    gone = np.isin(layout.keys(facts.numpy()), layout.keys(removed.numpy()))
    return facts[torch.from_numpy(~gone)]
