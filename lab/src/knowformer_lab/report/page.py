"""RESULTS.md and its pictures, made from result files alone.

First what of the paper was met, in a picture and a table, then what we found, a row for every
figure of the paper, the protocol, and a section per table: what was asked, the answer in a
sentence, a picture, a short table. What is configured and has no result is named in a line. The
same results give the same bytes.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from knowformer.plots.learning_curve import can_draw
from knowformer.storage.atomic_files import write_text
from knowformer_lab.experiment import TABLES, Experiment
from knowformer_lab.report import study_sections, table_sections
from knowformer_lab.report.attention_section import attention
from knowformer_lab.report.cells import Section, counted, not_yet_run
from knowformer_lab.report.figures import figures_of_paper
from knowformer_lab.report.figures_section import every_figure
from knowformer_lab.report.findings import findings
from knowformer_lab.report.overview import overview
from knowformer_lab.report.summary import Summary
from knowformer_lab.report.ultra_section import read_zero_shot, ultra
from knowformer_lab.results import ResultStore

TITLE = "# Results\n"

ORIGIN = """The figures of the KnowFormer paper, made again on an ordinary CPU, with weights chosen
on validation facts alone. Every number of ours comes from a file in [`results/`](results), which
holds all metrics, settings, environment and the command that makes it again; the paper's stand in
the experiments' files. Nothing here is typed in by hand.
"""

PROTOCOL = """## Protocol

Each test fact is asked in both directions, against every entity, with known facts of all splits
removed from the candidates. MRR and hits are of realistic ranks: ties count half. Weights are
chosen on validation facts alone, filtered by train and valid facts, so no test fact has a say in
it. The authors' released code chooses them on the test facts and counts ties against itself.

How to read the tables:

- *Ours* is the mean over seeds ± standard deviation; *difference* is ours less the paper's.
- *Minutes* are those of one training and its evaluation, *MiB* is the largest memory of the
  process. *Epochs* with a plus were cut off by the budget of time.
- *Commit* is that of the code that ran; with a star it had uncommitted changes.
- Settings are those of `knowformer train NAME` unless the experiment's file says otherwise.
"""

BUILDERS: dict[str, Callable[[list[Summary], Path], Section]] = {
    "inductive": table_sections.inductive,
    "transductive": table_sections.transductive,
    "ablation": table_sections.ablation,
    "layers": table_sections.layers,
    "views": table_sections.views,
    "paths": study_sections.paths,
    "homogeneous": table_sections.homogeneous,
    "attention": attention,
    "selection": study_sections.selection,
    "theory": study_sections.theory,
    "search": study_sections.search,
}


def write_report(experiments: Mapping[str, Experiment], store: ResultStore, folder: Path) -> Path:
    """Writes ``RESULTS.md`` and ``pictures/`` into a folder, and returns the file."""
    summaries = Summary.collect(experiments.values(), store)
    pictures, drawing = folder / "pictures", can_draw()
    figures, zero_shot = figures_of_paper(summaries), read_zero_shot(store.folder.parent)
    beside_ultra = ultra(summaries, zero_shot)
    parts = [
        TITLE,
        overview(figures, summaries, pictures, with_picture=drawing),
        ORIGIN,
        _state(summaries),
        *([found] if (found := findings(summaries, zero_shot)) else []),
        *([every_figure(figures).markdown(with_picture=False)] if figures else []),
        PROTOCOL + _ties(summaries),
    ]
    waiting: list[str] = []
    for table in TABLES:
        members = [summary for summary in summaries if summary.experiment.table == table]
        if not members:
            continue
        section = BUILDERS[table](members, pictures)
        left = not_yet_run(members)
        if any(summary.results for summary in members):
            parts.append(section.markdown(with_picture=drawing))
            parts += [f"Not yet run: {left}.\n"] if left else []
        else:
            waiting.append(f"- **{section.title}**, `knowformer reproduce {table}`: {left}.\n")
        if table == "inductive" and beside_ultra is not None:
            parts.append(beside_ultra.markdown(with_picture=False))
    if waiting:
        parts.append(f"## Not yet run\n\n{''.join(waiting)}")
    path = folder / "RESULTS.md"
    write_text(path, "\n".join(parts))
    return path


def _state(summaries: list[Summary]) -> str:
    wanted = sum(len(summary.experiment.seeds) for summary in summaries)
    done = sum(
        len({r.seed for r in summary.results} & set(summary.experiment.seeds))
        for summary in summaries
    )
    results = [result for summary in summaries for result in summary.results]
    trainings = {r.training.run: r.training.minutes for r in results if r.training}
    hours = (sum(trainings.values()) + sum(r.measuring_minutes for r in results)) / 60
    machines = sorted({_machine(r.environment["hardware"], r.threads) for r in results})
    where = f", in {hours:.1f} hours on {'; '.join(machines)}" if machines else ""
    return (
        f"{done} of {wanted} runs (an experiment under a seed) are done{where}. `knowformer "
        "reproduce` lists them, `knowformer reproduce NAME` runs what is missing, `knowformer "
        "reproduce --report` writes this page.\n"
    )


def _ties(summaries: list[Summary]) -> str:
    """What counting ties as the released code does would change."""
    reports = [r.evaluation for s in summaries for r in s.results if r.evaluation]
    if not reports:
        return ""
    lost = max(report.realistic["mrr"] - report.pessimistic["mrr"] for report in reports)
    return (
        f"- Pessimistic MRR, every tie lost, is what the released code prints. It lies at most "
        f"{lost:.4f} below on any run here, so the tables leave it out.\n"
    )


def _machine(hardware: Mapping[str, object], threads: int) -> str:
    return (
        f"{hardware['processor']}, {hardware['cores']} cores, {hardware['instructions']}, "
        f"{counted(threads, 'thread')}"
    )
