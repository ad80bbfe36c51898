"""The report, from results made here; figures in it are those of the files."""

import json
import re
from pathlib import Path

import pytest

from knowformer.reproduction.experiment import load_experiments
from knowformer.reproduction.report import write_report
from knowformer.reproduction.results import ResultStore
from knowformer.reproduction.summary import Estimate, Summary, bootstrap_interval, paired
from tests.unit.reproduction.conftest import Bench, WriteExperiment

SHIPPED = Path(__file__).resolve().parents[3] / "experiments"


def test_an_estimate_is_mean_and_sample_deviation() -> None:
    estimate = Estimate.of([0.1, 0.2, 0.3])
    assert estimate is not None
    assert estimate.text() == "0.200 ± 0.100"
    one = Estimate.of([0.25])
    assert one is not None
    assert one.text(sign=True) == "+0.250"
    assert Estimate.of([]) is None


def test_a_bootstrap_interval_holds_the_mean_and_repeats() -> None:
    values = [0.0, 0.01, 0.02, 0.03, 0.1]
    low, high = bootstrap_interval(values)
    assert 0 <= low < sum(values) / 5 < high <= 0.1
    assert bootstrap_interval(values) == (low, high)
    assert bootstrap_interval([0.5]) == (0.5, 0.5)


def test_without_results_everything_is_not_yet_run(tmp_path: Path) -> None:
    experiments = load_experiments(SHIPPED)
    text = write_report(experiments, ResultStore(tmp_path / "results"), tmp_path).read_text("utf-8")
    for experiment in experiments.values():
        assert (experiment.dataset or "RA-WL2") in text
    wanted = sum(len(experiment.seeds) for experiment in experiments.values())
    assert f"0 of {wanted} runs" in text
    assert "| wn18rr_v1 | 0.752 | not yet run |" in text
    shown = set(re.findall(r"!\[[^]]*\]\((\S+)\)", text))
    assert all((tmp_path / picture).is_file() for picture in shown)
    assert shown == {"pictures/layers.png"}  # the paper's own map needs no result


@pytest.mark.slow
def test_the_report_shows_the_files_figures_and_repeats_byte_for_byte(
    bench: Bench, write_experiment: WriteExperiment
) -> None:
    write_experiment("theory/theorem2", 'kind = "expressivity"\nstudy.num_graphs = 2')
    write_experiment(
        "paths/one", 'kind = "paths"\nlike = "inductive/one"\n[[runs]]\nname = "attention"'
    )
    write_experiment(
        "theory/theorem1", 'kind = "bound"\nlike = "inductive/one"\nstudy.num_queries = 1'
    )
    write_experiment(
        "ablation/one",
        'kind = "ranking"\nlike = "inductive/one"\n[[runs]]\nname = "full"\n'
        '[[runs]]\nname = "no_attention"\nsettings = { model.attention = false }',
    )
    bench = Bench(bench.folder)
    bench.run(*bench.experiments)
    path = write_report(bench.experiments, bench.store, bench.folder)
    text = path.read_text("utf-8")
    summary = Summary.collect([bench.experiments["inductive/one"]], bench.store)[0]
    files = [bench.store.path(bench.experiments["inductive/one"], seed) for seed in (0, 1)]
    figures = [json.loads(f.read_text("utf-8"))["evaluation"]["realistic"]["mrr"] for f in files]
    expected = Estimate.of(figures)
    assert expected is not None
    assert summary.estimate("mrr") == expected
    assert f"[one](results/inductive/one) | - | {expected.text()}" in text
    assert "Choosing on test facts is worth" in text
    assert "Attention's gain in MRR:** one " in text
    assert "not yet run:" not in text
    pictures = {p.name: p.read_bytes() for p in (bench.folder / "pictures").iterdir()}
    assert {"inductive.png", "ablation.png", "paths.png", "selection.png"} <= pictures.keys()
    write_report(bench.experiments, bench.store, bench.folder)
    assert path.read_text("utf-8") == text
    assert {p.name: p.read_bytes() for p in (bench.folder / "pictures").iterdir()} == pictures


def test_differences_are_taken_seed_by_seed(bench: Bench) -> None:
    bench.run("inductive/one")
    summary = Summary.collect([bench.experiments["inductive/one"]], bench.store)[0]
    first = Summary(summary.experiment, summary.results[:1])
    gap = paired(first, summary)
    assert gap == Estimate(0.0, None, 1)
    assert paired(first, Summary(summary.experiment, summary.results[1:])) is None


def test_without_anything_to_draw_there_is_one_file(tmp_path: Path, bench: Bench) -> None:
    write_report(bench.experiments, bench.store, tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["RESULTS.md"]
