"""An answerer on a small graph with a model that was never trained: names and files need none."""

from collections.abc import Callable

import pytest
import torch

from knowformer.answering.answerer import Answerer
from knowformer.calibration.calibrator import Calibrator
from knowformer.data.labels import Labels
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.queries.known_answers import KnownAnswers

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)


@pytest.fixture(scope="session")
def build_answerer() -> Callable[..., Answerer]:
    """A function that binds an initialised model to a graph."""

    def build(graph: KnowledgeGraph, *, labels: Labels | None = None, seed: int = 0) -> Answerer:
        model = KnowFormer(SMALL, 2 * len(graph.relations)).eval()
        initialize(model, generator=torch.Generator().manual_seed(seed))
        return Answerer(
            model,
            graph,
            known=KnownAnswers.of(graph),
            calibrator=Calibrator(None, "softmax", graph.relations),
            labels=labels or Labels(),
            seed=seed,
            threads=1,
        )

    return build


@pytest.fixture(scope="session")
def answerer(family: KnowledgeGraph, build_answerer: Callable[..., Answerer]) -> Answerer:
    """On the family of five; ``ann`` and ``mother_of`` have readable names."""
    labels = Labels({"ann": "Ann Archer"}, {"mother_of": "is mother of"})
    return build_answerer(family, labels=labels)
