"""The report, from results made here; figures in it are those of the files."""

import json
import re
from pathlib import Path

import pytest

from bench import SHIPPED, Bench, WriteExperiment
from knowformer_lab.experiment import load_experiments
from knowformer_lab.report.page import write_report
from knowformer_lab.report.summary import Estimate, Summary, paired
from knowformer_lab.results import ResultStore


def test_an_estimate_is_mean_and_sample_deviation() -> None:
    estimate = Estimate.of([0.1, 0.2, 0.3])
    assert estimate is not None
    assert estimate.text() == "0.200 ± 0.100"
    one = Estimate.of([0.25])
    assert one is not None
    assert one.text(sign=True) == "+0.250"
    assert Estimate.of([]) is None


def test_without_results_everything_is_not_yet_run(tmp_path: Path) -> None:
    experiments = load_experiments(SHIPPED)
    text = write_report(experiments, ResultStore(tmp_path / "results"), tmp_path).read_text("utf-8")
    for experiment in experiments.values():
        assert experiment.group in text
    wanted = sum(len(experiment.seeds) for experiment in experiments.values())
    assert f"0 of {wanted} runs" in text
    assert "None of the paper's figures has been made again yet." in text
    assert "| Inductive, table 2 | 12 | 0 | - |" in text
    compact = text.split("## Not yet run")[1]
    assert "**Inductive**, `knowformer reproduce inductive`: " in compact
    assert "wn18rr_v1 (paper 0.752)" in compact
    assert "wn18rr (27 variants)" in compact
    assert text.count("\n## ") == 2  # protocol, and what is not yet run
    assert not re.findall(r"!\[[^]]*\]", text)


def test_the_overview_counts_what_was_met(bench: Bench, write_experiment: WriteExperiment) -> None:
    bench.run("inductive/one")
    ours = Summary.collect([bench.experiments["inductive/one"]], bench.store)[0].estimate("mrr")
    assert ours is not None
    gaps = {"reached": 0.02, "near": -0.004, "missed": -0.05}
    for name, gap in gaps.items():
        write_experiment(
            f"inductive/{name}",
            'kind = "ranking"\nlike = "inductive/one"\n[published]\ntable = "T"\n'
            f"metrics = {{ mrr = {ours.mean - gap!r} }}",
        )
    write_experiment(
        "inductive/later",
        'kind = "ranking"\nlike = "inductive/one"\nsettings.training.batch_size = 8\n'
        '[published]\ntable = "T"\nmetrics = { mrr = 0.5 }',
    )
    bench = Bench(bench.folder)
    bench.run("inductive/one", *(f"inductive/{name}" for name in gaps))
    text = write_report(bench.experiments, bench.store, bench.folder).read_text("utf-8")
    assert "**3 of the paper's 4 figures made again, 2 of them met**" in text
    assert "table 2 | 4 | 3 | 1 | 1 | 1 | -0.011 | -0.050 |" in text
    assert "The paper's MRR is met on 2 of 3 data sets**" in text
    assert "differences run from -0.050 to +0.020." in text
    assert "\nNot yet run: later (paper 0.500).\n" in text
    assert (bench.folder / "pictures" / "overview.png").is_file()


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
    assert "Not yet run" not in text
    pictures = {p.name: p.read_bytes() for p in (bench.folder / "pictures").iterdir()}
    assert {"ablation.png", "paths.png", "selection.png", "theory.png"} <= pictures.keys()
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
