"""A report on a small test set, measured once."""

from collections.abc import Callable

import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.explanation.check.benchmark import measure_test_set
from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize


@pytest.fixture(scope="package")
def measure(ring: Dataset) -> Callable[..., FaithfulnessReport]:
    """A function: how many facts of the ring, and options, to a report of a small model."""

    def run(
        count: int, seed: int = 0, dataset: Dataset = ring, **how: object
    ) -> FaithfulnessReport:
        config = ModelConfig(hidden_dim=16, num_layers=1, num_heads=4)
        model = KnowFormer(config, 2 * len(dataset.relations))
        initialize(model, generator=torch.Generator().manual_seed(0))
        return measure_test_set(model, dataset, count, seed=seed, num_draws=2, **how)  # pyright: ignore[reportArgumentType]

    return run


@pytest.fixture(scope="package")
def report(measure: Callable[..., FaithfulnessReport]) -> FaithfulnessReport:
    """Two predictions explained."""
    return measure(2)
