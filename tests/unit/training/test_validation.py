from dataclasses import replace

from knowformer.data.dataset import Dataset
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import parse_config
from knowformer.training.validation import sample_validation, validation_terms


def config(**training: object) -> RunConfig:
    return parse_config({"training": training}, where="test")


def test_the_sample_is_the_same_every_time(ring: Dataset) -> None:
    few = config(max_valid_facts=2)
    sample = sample_validation(ring.valid, few)
    assert len(sample.facts) == 2
    assert sample.facts.tolist() == sample_validation(ring.valid, few).facts.tolist()
    assert sample_validation(ring.valid, config()) is ring.valid


def test_what_sets_validation_apart_is_said(ring: Dataset) -> None:
    assert validation_terms(ring, config()).startswith("true test facts count as wrong answers")
    assert validation_terms(ring, config(max_valid_facts=2)).endswith("2 of 3 facts are asked")
    assert validation_terms(ring, config(), num_facts=1).endswith("1 of 3 facts are asked")
    graph = KnowledgeGraph(ring.test.graph.entities, ring.relations, ring.test.graph.facts)
    inductive = replace(ring, test=replace(ring.test, graph=graph))
    assert validation_terms(inductive, config()) == (
        "the graph is that of training, in the test another"
    )
    apart = validation_terms(inductive, config(validation_region=0.3))
    assert apart == "the facts asked are set apart from the training facts"
