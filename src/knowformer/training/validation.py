"""Validation in training: which facts select weights, and why their MRR is not that of a report."""

from knowformer.data.dataset import Dataset, Split, TrainingSplits
from knowformer.data.holdout import hold_out, sample_facts
from knowformer.seeding import generator
from knowformer.training.config import RunConfig


def training_splits(dataset: Dataset, config: RunConfig) -> TrainingSplits:
    """Returns the facts that a run trains and validates on, with its validation holdout."""
    return hold_out(
        dataset.for_training(),
        entities=config.training.validation_region,
        relations=config.training.validation_relations,
        seed=config.seed,
    )


def sample_validation(split: Split, config: RunConfig, *, limit: int | None = None) -> Split:
    """Returns the validation split with the facts that every validation of a run asks.

    Args:
        split: the validation split.
        config: gives the seed, and how many facts at most.
        limit: another number, where there is little time.
    """
    draw = generator(config.seed, "valid_facts")
    return sample_facts(split, limit or config.training.max_valid_facts, generator=draw)


def validation_terms(dataset: Dataset, config: RunConfig, *, num_facts: int | None = None) -> str:
    """Says what sets the validation MRR of a run apart from the MRR of its test facts.

    Args:
        dataset: the run's.
        config: its settings.
        num_facts: that validations asked for, if they are fewer than the settings say.

    Returns:
        What holds of validation, to follow "in validation"; nothing where the two compare.
    """
    training, terms = config.training, list[str]()
    if training.validation_region or training.validation_relations:
        terms.append("the facts asked are set apart from the training facts")
    elif dataset.is_inductive and dataset.valid.graph is dataset.train.graph:
        terms.append("the graph is that of training, in the test another")
    if dataset.valid.graph is dataset.test.graph:
        terms.append(
            "true test facts count as wrong answers, as training must not know them, which makes "
            "the figure lower"
        )
    num_facts = num_facts or training.max_valid_facts
    if len(dataset.valid.facts) > num_facts:
        terms.append(f"{num_facts:,} of {len(dataset.valid.facts):,} facts are asked")
    return ", and ".join(terms)
