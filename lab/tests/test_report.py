"""The report, from results made here; figures in it are those of the files."""

import json
import re
from pathlib import Path

import pytest

from bench import SHIPPED, Bench, WriteExperiment
from knowformer_lab.experiment import load_experiments
from knowformer_lab.report.costs import CostModel
from knowformer_lab.report.page import write_report
from knowformer_lab.report.summary import Estimate, Summary, paired
from knowformer_lab.report.table_sections import homogeneous
from knowformer_lab.report.ultra_section import read_zero_shot, ultra
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
    assert "| Inductive, table 2 | 12 | 0 | 0 | 12 | - | - |" in text
    rows = text.split("## Every figure")[1].split("\n## ")[0].splitlines()
    assert sum("| not run |" in row for row in rows) == 54
    assert any("layers/wn18rr/L3_Q2_V3 | not run | 27 trainings" in row for row in rows)
    assert all(row.endswith("| not known |") for row in rows if "| not run |" in row)
    assert "## What we found" not in text
    assert "## Beside ULTRA" not in text
    compact = text.split("## Not yet run")[1]
    assert "**Inductive**, `knowformer reproduce inductive`: " in compact
    assert "wn18rr_v1 (paper 0.752)" in compact
    assert "wn18rr (27 variants)" in compact
    assert text.count("\n## ") == 3  # every figure, protocol, and what is not yet run
    assert not re.findall(r"!\[[^]]*\]", text)


def test_the_overview_counts_what_was_met(bench: Bench, write_experiment: WriteExperiment) -> None:
    bench.run("inductive/one")
    ours = Summary.collect([bench.experiments["inductive/one"]], bench.store)[0].estimate("mrr")
    assert ours is not None
    gaps = {"reached": 0.02, "near": -0.004, "missed": -0.05}
    for name, gap in gaps.items():
        write_experiment(
            f"inductive/{name}",
            'kind = "ranking"\nlike = "inductive/one"\nnote = "a reason"\n'
            '[published]\ntable = "T"\n'
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
    hours = r"\d+\.\d"
    assert re.search(rf"table 2 \| 4 \| 2 \| 1 \| 1 \| -0\.050 \| {hours} \|", text)
    assert text.index("pictures/overview.png") < text.index("table 2 | 4") < text.index("\n## ")
    assert re.search(r"inductive/missed\) \| \*\*missed\*\* \| a reason \| ", text)
    assert re.search(r"inductive/near\) \| met \| - \| ", text)
    assert re.search(rf"inductive/later \| not run \| - .*\| {hours}, like inductive/", text)
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
    found = text.split("## What we found")[1].split("\n## ")[0]
    assert re.search(r"What it adds to test MRR under the same seeds: one \S+ \(2 seeds, ", found)
    assert "In 1 runs of ours" not in found
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


def test_the_interval_of_a_mean_is_students() -> None:
    estimate = Estimate.of([0.1, 0.2, 0.3])
    assert estimate is not None
    assert estimate.interval is not None
    half = 4.303 * 0.1 / 3**0.5  # a table of Student's t, two degrees of freedom
    assert estimate.interval == pytest.approx((0.2 - half, 0.2 + half))
    one = Estimate.of([0.2])
    assert one is not None
    assert one.interval is None


def test_costs_follow_epochs_hops_and_the_most_alike_run(
    bench: Bench, write_experiment: WriteExperiment
) -> None:
    bench.run("inductive/one")
    variants = {
        "same": "",
        "longer": "epochs = 6",
        "deeper": "[settings.model]\nnum_layers = 2",
        "limited": "minutes = 0.0001",
    }
    for name, text in variants.items():
        write_experiment(f"layers/{name}", f'kind = "ranking"\nlike = "inductive/one"\n{text}')
    bench = Bench(bench.folder)
    summaries = Summary.collect(bench.experiments.values(), bench.store)
    spent = next(s for s in summaries if s.experiment.name == "inductive/one").core_minutes()
    assert spent is not None
    costs = CostModel(summaries)
    found = {name: costs.estimate(bench.experiments[f"layers/{name}"]) for name in variants}
    assert all(cost is not None and cost.like == "inductive/one" for cost in found.values())
    ratios = {name: cost.core_minutes / spent for name, cost in found.items() if cost}
    assert ratios["same"] == pytest.approx(1.0)
    assert ratios["longer"] == pytest.approx(3.0)  # six epochs instead of two
    assert ratios["deeper"] == pytest.approx(2.0)
    assert ratios["limited"] == pytest.approx(0.0001 / spent)
    assert CostModel([]).estimate(bench.experiments["layers/same"]) is None


def test_beside_ultra_stand_the_files_figures(bench: Bench) -> None:
    summaries = Summary.collect(load_experiments(SHIPPED).values(), bench.store)
    assert ultra(summaries, {}) is None
    zero_shot = read_zero_shot(SHIPPED)
    section = ultra(summaries, zero_shot)
    assert section is not None
    ours = f"{zero_shot['nell-995_v1']['pessimistic']['mrr']:.3f}"
    assert f"| nell-995_v1 | 0.757 / 0.878 | 0.827 / 0.930 | - | 0.785 | {ours} |" in section.table
    assert re.search(r"\| wn18rr_v1 \| 0\.685 / .* \| 0\.\d{3}\\\* \|", section.table)
    assert "10 graphs with new relations" in section.words[-1]


def test_both_protocols_of_link_prediction_stand_beside_the_papers_figure(tmp_path: Path) -> None:
    experiments = load_experiments(SHIPPED)
    members = [e for e in experiments.values() if e.table == "homogeneous"]
    summaries = Summary.collect(members, ResultStore(SHIPPED / "results"))
    cora = next(s for s in summaries if s.experiment.name == "homogeneous/cora/candidates")
    ours = cora.estimate("auroc")
    assert ours is not None
    table = homogeneous(summaries, tmp_path).table
    gap = f"{ours.mean - 0.961:+.3f}"
    assert f"cora/candidates) | candidates | 0.961 | {ours.text()} | {gap} | 0.965 | " in table
