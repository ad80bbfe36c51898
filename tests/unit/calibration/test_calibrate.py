from dataclasses import replace

import pytest
import torch

from knowformer.calibration.calibrate import calibrate_model
from knowformer.calibration.fit import fit_calibration
from knowformer.data.dataset import Dataset, Split
from knowformer.errors import DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.scoring.scorer import Scorer


@pytest.fixture(scope="module")
def dataset(ring: Dataset) -> Dataset:
    """Half of the ring's facts are for training, a quarter each for validation and test."""
    facts = torch.cat([ring.train.facts, ring.valid.facts, ring.test.facts])
    graph = KnowledgeGraph(ring.train.graph.entities, ring.relations, facts[:16])
    return Dataset(
        "ring",
        train=Split("train", graph, facts[:16], facts),
        valid=Split("valid", graph, facts[16:28], facts),
        test=Split("test", graph, facts[28:], facts),
    )


@pytest.fixture(scope="module")
def model(dataset: Dataset) -> KnowFormer:
    model = KnowFormer(ModelConfig(hidden_dim=8, num_layers=1), 2 * len(dataset.relations))
    initialize(model, generator=torch.Generator().manual_seed(0))
    return model


def test_it_fits_to_validation_facts_and_the_number_of_test_facts(
    model: KnowFormer, dataset: Dataset
) -> None:
    valid = dataset.for_training().valid
    scorer = Scorer(model, valid.graph, seed=3)
    expected = fit_calibration(scorer, valid, link="softmax", seed=3, num_test_facts=4)
    found = calibrate_model(model, dataset, link="softmax", seed=3)
    assert found.model_copy(update={"relation_choice": None}) == expected
    assert found.relation_choice is not None
    assert found.relation_choice.facts == len(valid.facts)


def test_test_facts_of_another_graph_do_not_count(model: KnowFormer, dataset: Dataset) -> None:
    graph = dataset.test.graph
    elsewhere = KnowledgeGraph(graph.entities, graph.relations, graph.facts)
    other = replace(dataset, test=replace(dataset.test, graph=elsewhere))
    valid = dataset.for_training().valid
    scorer = Scorer(model, valid.graph, seed=3)
    expected = fit_calibration(scorer, valid, link="sigmoid", seed=3, num_test_facts=0)
    found = calibrate_model(model, other, link="sigmoid", seed=3)
    assert found.model_copy(update={"relation_choice": None}) == expected


def test_too_few_validation_facts_are_refused(model: KnowFormer, ring: Dataset) -> None:
    with pytest.raises(DataError):
        calibrate_model(model, ring, link="softmax", seed=0)
