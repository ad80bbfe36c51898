"""What a run without a result would cost, from the stored run that is most like it.

The work of a training is taken to grow with its queries, the edges that a query sees and the hops.
That is good to a factor of two: it says in which order to run what is left, not when it will end.
"""

from dataclasses import dataclass

from knowformer.data.catalog import entries
from knowformer.training.config import RunConfig
from knowformer.training.settings_file import flat_settings
from knowformer_lab.experiment import Experiment
from knowformer_lab.report.summary import Summary

NOT_WORK = ("seed", "threads", "backend")  # settings that a likeness does not depend on


@dataclass(frozen=True)
class Cost:
    """An estimate for one seed."""

    core_minutes: float
    like: str
    """The experiment whose stored minutes it is made from."""


class CostModel:
    """Estimates costs from all results there are."""

    def __init__(self, summaries: list[Summary]) -> None:
        """Keeps the experiments that have a finished training."""
        self._stored = [s for s in summaries if any(r.training for r in s.results)]

    def estimate(self, experiment: Experiment) -> Cost | None:
        """Returns what a seed would cost; None if no stored run is like it."""
        if experiment.dataset is None or not self._stored:
            return None
        like = min(self._stored, key=lambda stored: _distance(experiment, stored.experiment))
        spent = like.core_minutes()
        if spent is None:
            return None
        wanted, config = experiment.config(0), like.experiment.config(0)
        ratio = _work(wanted, experiment.dataset) / _work(config, like.experiment.dataset)
        minutes = spent * ratio * self._cost_of_similarity(wanted, config)
        limit = wanted.training.max_minutes
        if limit is not None:
            minutes = min(minutes, limit * like.results[0].threads)
        return Cost(minutes, like.experiment.name)

    def _cost_of_similarity(self, wanted: RunConfig, config: RunConfig) -> float:
        """How much longer one similarity took than another in the same table and file."""
        one, other = wanted.model.similarity, config.model.similarity
        if one == other:
            return 1.0
        ratios = [
            slow / fast
            for a in self._stored
            for b in self._stored
            if a.experiment.name.split("/")[:2] == b.experiment.name.split("/")[:2]
            and a.experiment.config(0).model.similarity == one
            and b.experiment.config(0).model.similarity == other
            and (slow := a.core_minutes())
            and (fast := b.core_minutes())
        ]
        return max(ratios, default=1.0)


def _distance(experiment: Experiment, stored: Experiment) -> tuple[bool, bool, bool, int]:
    """How unlike two experiments are; the data set weighs most, then what is done with it."""
    one, other = (flat_settings(each.config(0)) for each in (experiment, stored))
    differing = sum(one[key] != other[key] for key in one if key not in NOT_WORK)
    return (
        experiment.dataset != stored.dataset,
        experiment.kind != stored.kind,
        experiment.table != stored.table,
        differing,
    )


def _work(config: RunConfig, dataset: str | None) -> float:
    """Queries times edges that a query sees times hops, in units of its own."""
    model, training = config.model, config.training
    entry = entries().get(dataset or "")
    entities = entry.counts.entities if entry else 1
    # Facts to train on; a homogeneous graph has its edges in one file.
    facts = next(iter(entry.counts.facts.values())) if entry else 1
    seen = min(1.0, (training.region_size or model.num_seen(entities)) / entities)
    query_hops = model.query_key_hops if model.has_query_key_hops else 0
    hops = max(1, model.layers * (model.value_hops + query_hops))
    queries = 2 * facts if training.loss == "pairs" else facts  # an unlinked pair beside each
    return training.epochs * queries * facts * seen * hops
