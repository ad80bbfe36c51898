"""Validation in training: which facts select weights, and why their MRR is not that of a report."""

from knowformer.data.dataset import Dataset, Split
from knowformer.data.holdout import sample_facts
from knowformer.seeding import generator
from knowformer.training.config import RunConfig


def sample_validation(split: Split, config: RunConfig) -> Split:
    """Returns the validation split with the facts that every validation of a run asks."""
    limit, draw = config.training.max_valid_facts, generator(config.seed, "valid_facts")
    return sample_facts(split, limit, generator=draw)


def validation_terms(dataset: Dataset, config: RunConfig) -> str:
    """Says what sets the validation MRR of a run apart from the MRR of its test facts."""
    training, terms = config.training, list[str]()
    if training.validation_region or training.validation_relations:
        terms.append("validation asks facts set apart from the training facts")
    elif dataset.is_inductive and dataset.valid.graph is dataset.train.graph:
        terms.append("validation asks on the training graph, the test on another")
    if dataset.valid.graph is dataset.test.graph:
        terms.append(
            "in validation test facts are not filtered out but count as wrong answers, so that "
            "they choose nothing"
        )
    if len(dataset.valid.facts) > training.max_valid_facts:
        terms.append(f"validation asks a sample of {training.max_valid_facts:,} facts")
    return "; ".join(terms)
