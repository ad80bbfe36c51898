"""A world whose true probabilities are known."""

import pytest
import torch
from torch import Tensor

from knowformer.calibration.calibration import Calibration
from knowformer.calibration.fit import fit_calibration
from knowformer.data.dataset import Split
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.queries.scores import Scores

NUM_ENTITIES, NUM_RELATIONS = 90, 2


class World:
    """Facts drawn from sigmoid(2 * score - 4), split at random: 70, 15 and 15 in a hundred."""

    def __init__(self, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        shape = (NUM_RELATIONS, NUM_ENTITIES, NUM_ENTITIES)
        self.table = torch.randn(shape, generator=random)
        is_true = torch.rand(shape, generator=random) < torch.sigmoid(2 * self.table - 4)
        facts = torch.nonzero(is_true)[:, [1, 0, 2]]
        facts = facts[torch.randperm(len(facts), generator=random)]
        first, second = int(0.7 * len(facts)), int(0.85 * len(facts))
        self.train, self.valid, self.test = facts[:first], facts[first:second], facts[second:]
        names = Vocabulary([f"e{n}" for n in range(NUM_ENTITIES)], kind="entity")
        relations = Vocabulary([f"r{n}" for n in range(NUM_RELATIONS)], kind="relation")
        self.graph = KnowledgeGraph(names, relations, self.train)

    def score(self, heads: Tensor, relations: Tensor) -> Scores:
        both = torch.cat([self.table, self.table.transpose(1, 2)])
        return Scores.of_all(both[relations, heads])

    def split(self, name: str) -> Split:
        if name == "valid":  # as training sees it: test facts are not known
            return Split("valid", self.graph, self.valid, torch.cat([self.train, self.valid]))
        return Split("test", self.graph, self.test, torch.cat([self.train, self.valid, self.test]))

    def calibration(self, *, num_test_facts: int) -> Calibration:
        return fit_calibration(
            self, self.split("valid"), link="sigmoid", seed=0, num_test_facts=num_test_facts
        )


@pytest.fixture(scope="package")
def world() -> World:
    return World(0)
