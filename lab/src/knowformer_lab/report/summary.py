"""Results of one experiment put together: mean and deviation over seeds, cost, protocol."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from knowformer_lab.experiment import Experiment
from knowformer_lab.results import Result, ResultStore

NOT_YET = "not yet run"
# 97.5 % points of Student's t by degrees of freedom; with more seeds than that, a little too wide.
T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
Measure = Callable[[Result], float | None]


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its standard deviation; none for one seed."""

    mean: float
    deviation: float | None
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Estimate | None":
        """Returns the estimate from values, or None if there are none."""
        sample = list(values)
        if not sample:
            return None
        return cls(fmean(sample), stdev(sample) if len(sample) > 1 else None, len(sample))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean over seeds (Student's t); none for one seed."""
        if self.deviation is None:
            return None
        quantile = T_QUANTILES[min(self.count - 1, len(T_QUANTILES)) - 1]
        half = quantile * self.deviation / self.count**0.5
        return (self.mean - half, self.mean + half)

    def text(self, *, sign: bool = False) -> str:
        """Returns it as it is printed: 0.733 ± 0.004."""
        mean = f"{self.mean:+z.3f}" if sign else f"{self.mean:.3f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.3f}"


@dataclass(frozen=True)
class Summary:
    """An experiment with its present results."""

    experiment: Experiment
    results: list[Result]

    @classmethod
    def collect(cls, experiments: Iterable[Experiment], store: ResultStore) -> list["Summary"]:
        """Returns a summary per experiment, results or none."""
        return [cls(experiment, store.all_current(experiment)) for experiment in experiments]

    def estimate(self, measure: Measure | str) -> Estimate | None:
        """Returns the estimate of a metric by name, or of what a function gives."""
        take = metric(measure) if isinstance(measure, str) else measure
        values = [take(result) for result in self.results]
        return Estimate.of(value for value in values if value is not None)

    def published(self, name: str) -> float | None:
        """Returns the paper's figure, if it has one."""
        published = self.experiment.published
        return published.metrics.get(name) if published else None

    def difference(self, name: str) -> float | None:
        """Returns ours less the paper's."""
        ours, theirs = self.estimate(name), self.published(name)
        return None if ours is None or theirs is None else ours.mean - theirs

    def core_minutes(self) -> float | None:
        """Returns the mean minutes of a seed, each counted once for every thread."""
        spent = [
            (r.training.minutes * r.training.threads if r.training else 0.0)
            + r.measuring_minutes * r.threads
            for r in self.results
        ]
        return fmean(spent) if spent else None

    def minutes(self) -> str:
        """Returns the mean minutes of training and of what came after it."""
        return _mean_text(self.results, _minutes, "{:.1f}")

    def memory(self) -> str:
        """Returns the largest peak of memory among the runs, in MiB."""
        peaks = [
            max(result.peak_memory_mib, result.training.peak_memory_mib if result.training else 0)
            for result in self.results
        ]
        return f"{max(peaks):,.0f}" if peaks else "-"

    def epochs(self) -> str:
        """Returns the epochs done; a plus where the budget ended the run."""
        records = [result.training for result in self.results if result.training]
        if not records:
            return "-"
        cut = "+" if any(record.stopped_by == "minutes" for record in records) else ""
        return f"{fmean(record.epochs_done for record in records):.3g}{cut}"

    def commit(self) -> str:
        """Returns the commits of the results, short; a star for uncommitted changes."""
        commits = {_short(result.environment.get("commit")) for result in self.results}
        return ", ".join(sorted(commits)) or "-"


def metric(name: str) -> Measure:
    """Returns a function that takes a metric by name from a result."""

    def take(result: Result) -> float | None:
        if name == "valid_mrr":
            return result.training.valid_mrr if result.training else None
        if name == "valid_auroc":
            return result.study["auroc"] if result.study and "auroc" in result.study else None
        report = result.evaluation
        if report is None:
            return None
        if name in ("auroc", "average_precision"):
            return report.link_prediction[name] if report.link_prediction else None
        return report.realistic[name]

    return take


def paired(summary: Summary, base: Summary, name: str = "mrr") -> Estimate | None:
    """Returns the difference from another experiment, taken seed by seed."""
    take = metric(name)
    of_base = {result.seed: take(result) for result in base.results}
    differences: list[float] = []
    for result in summary.results:
        one, other = take(result), of_base.get(result.seed)
        if one is not None and other is not None:
            differences.append(one - other)
    return Estimate.of(differences)


def _minutes(result: Result) -> float:
    return (result.training.minutes if result.training else 0.0) + result.measuring_minutes


def _mean_text(results: list[Result], take: Callable[[Result], float], form: str) -> str:
    return form.format(fmean(take(result) for result in results)) if results else "-"


def _short(commit: str | None) -> str:
    if commit is None:
        return "unknown"
    return commit[:8] + ("*" if commit.endswith("+dirty") else "")
