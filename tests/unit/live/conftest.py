"""A small graph, with weights as they are drawn: what is stored does not depend on them."""

from pathlib import Path

import pytest

from knowformer import Dataset, ModelConfig, Reasoner, RunConfig
from knowformer.data.labels import Labels
from knowformer.graph.inverse import num_with_inverses
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.folder import Bundle
from knowformer.seeding import generator

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)


@pytest.fixture(scope="session")
def reasoner(ring: Dataset) -> Reasoner:
    """On the training facts of the ring; those held out are known all the same."""
    model = KnowFormer(SMALL, num_with_inverses(len(ring.relations)))
    initialize(model, generator=generator(0, "init"))
    config = RunConfig(model=SMALL, threads=1)
    return Reasoner(
        Bundle(Path("run"), config, ring, model.eval(), "softmax"),
        ring.test.graph,
        ring.test.known,
        labels=Labels({"place03": "Rome"}, {"next": "is followed by"}),
        threads=1,
    )
