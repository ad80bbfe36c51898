"""Small models in double precision on small graphs, so that what should agree does."""

from collections.abc import Callable

import pytest
import torch

from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.queries.known_answers import KnownAnswers

SETTINGS: list[dict[str, object]] = [
    {},
    {"similarity": "exponential"},
    {"similarity": "random_features", "num_random_features": 8},
    {"update_layers": 3, "update_norm": False, "noise_dim": 0, "num_heads": 1},
    {"attention": False},
    {"query_stream": False},
    {"value_stream": False},
    {"num_query_key_hops": 0},
]


@pytest.fixture
def finder() -> Callable[..., EvidenceFinder]:
    """A function: a graph and settings to an evidence finder; weights follow the seed."""

    def build(graph: KnowledgeGraph, seed: int = 0, **settings: object) -> EvidenceFinder:
        small = {"hidden_dim": 16, "num_layers": 2, "num_heads": 2, "num_value_hops": 2, **settings}
        model = KnowFormer(ModelConfig.model_validate(small), 2 * len(graph.relations))
        initialize(model, generator=torch.Generator().manual_seed(seed))
        return EvidenceFinder(model.double(), graph, KnownAnswers.of(graph), seed=seed)

    return build
