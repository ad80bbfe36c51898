"""RESULTS.md and its pictures, made from result files alone.

A section per table: what was asked, the answer in a sentence, a picture, a short table. What is
configured and has no result is listed as not yet run. The same results give the same bytes.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from knowformer.artifacts.learning_curve import can_draw
from knowformer.atomic_files import write_text
from knowformer.reproduction import sections, study_sections
from knowformer.reproduction.cells import Section
from knowformer.reproduction.experiment import TABLES, Experiment
from knowformer.reproduction.results import ResultStore
from knowformer.reproduction.summary import Summary

OPENING = """# Results

The paper's tables, made again on an ordinary CPU under one protocol. Every figure below comes
from a file in [`results/`](results), which holds all metrics, settings, environment and the
command that makes it again; nothing here is typed in by hand.

**Protocol.** Each test fact is asked in both directions, against every entity, with known facts
of all splits removed from the candidates. MRR and hits are of realistic ranks, ties counting
half; pessimistic MRR, which is what the authors' released code prints, stands beside them.
Weights are chosen on validation facts alone, filtered by train and valid facts: no test fact has
a say in it. The released code chooses them on the test facts; section [Selection](#selection)
says what that is worth.

**Reading.** *Ours* is the mean over seeds ± standard deviation. *Difference* is ours less the
paper's. *Minutes* are those of training and evaluation together, *MiB* the largest memory of the
process, both per run. *Epochs* with a plus were cut off by the time budget. A commit with a star
had uncommitted changes. Settings are those of `knowformer train NAME` unless the experiment's
file says otherwise.
"""

BUILDERS: dict[str, Callable[[list[Summary], Path], Section]] = {
    "inductive": sections.inductive,
    "transductive": sections.transductive,
    "ablation": sections.ablation,
    "layers": sections.layers,
    "paths": study_sections.paths,
    "homogeneous": sections.homogeneous,
    "selection": study_sections.selection,
    "theory": study_sections.theory,
    "search": study_sections.search,
}


def write_report(experiments: Mapping[str, Experiment], store: ResultStore, folder: Path) -> Path:
    """Writes ``RESULTS.md`` and ``pictures/`` into a folder, and returns the file."""
    summaries = Summary.collect(experiments.values(), store)
    pictures = folder / "pictures"
    parts = [OPENING, _state(summaries)]
    for table in TABLES:
        own = [summary for summary in summaries if summary.experiment.table == table]
        if own:
            parts.append(BUILDERS[table](own, pictures).markdown(with_picture=can_draw()))
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
    machines = sorted({_machine(r.environment["hardware"], r.threads) for r in results})
    where = f" Made on: {'; '.join(machines)}." if machines else ""
    return (
        f"**State.** {done} of {wanted} runs (an experiment under a seed) are done; the others are "
        f"configured and listed as not yet run.{where} `knowformer reproduce` lists them, "
        "`knowformer reproduce NAME` runs what is missing, `knowformer reproduce --report` writes "
        "this page.\n"
    )


def _machine(hardware: Mapping[str, object], threads: int) -> str:
    return (
        f"{hardware['processor']}, {hardware['cores']} cores, {hardware['instructions']}, "
        f"{threads} thread{'s' if threads > 1 else ''}"
    )
