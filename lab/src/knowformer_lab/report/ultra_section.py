"""The report's section beside ULTRA: trained, and on graphs that a model has never seen."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from knowformer_lab.report.cells import Section, linked, markdown_table, number_cell
from knowformer_lab.report.summary import Summary
from knowformer_lab.zero_shot import FULLY_INDUCTIVE, INDUCTIVE

ZERO_SHOT_FILE = "zero_shot.json"
COMMAND = "python -m knowformer_lab.zero_shot"

# MRR and hits@10 of ULTRA in the appendix of the KnowFormer paper, as printed there.
TRAINED_ULTRA = {
    "wn18rr_v1": (0.685, 0.793), "wn18rr_v2": (0.679, 0.779),
    "wn18rr_v3": (0.411, 0.546), "wn18rr_v4": (0.614, 0.720),
    "nell-995_v1": (0.757, 0.878), "nell-995_v2": (0.575, 0.761),
    "nell-995_v3": (0.563, 0.755), "nell-995_v4": (0.469, 0.733),
}  # fmt: skip

ZeroShot = dict[str, Any]
"""By data set: what ``zero_shot.measure`` found."""


def read_zero_shot(folder: Path) -> ZeroShot:
    """Returns what the shipped model scores without training; empty if it was never measured."""
    path = folder / ZERO_SHOT_FILE
    return json.loads(path.read_text("utf-8"))["datasets"] if path.is_file() else {}


def ultra(summaries: list[Summary], zero_shot: ZeroShot) -> Section | None:
    """The appendix's comparison, and zero-shot figures beside it; None if there is nothing yet."""
    if not zero_shot and not any(summary.results for summary in summaries):
        return None
    trained = {s.experiment.group: s for s in summaries if s.experiment.table == "inductive"}
    header = (
        "data set",
        "ULTRA, in the paper",
        "KnowFormer, in the paper",
        "ours",
        "ULTRA, zero-shot",
        "our shipped model, zero-shot",
    )
    rows: list[Sequence[str]] = []
    for name, theirs in INDUCTIVE.items():
        summary = trained.get(name)
        rows.append(
            (
                linked(summary, name) if summary else name,
                _pair(*TRAINED_ULTRA.get(name, (None, None))),
                _pair(*(summary.published(key) if summary else None for key in KEYS)),
                _pair(*(_mean(summary, key) for key in KEYS)),
                number_cell(theirs),
                _zero_shot_cell(zero_shot, name),
            )
        )
    table = markdown_table(header, rows)
    table += "\nGraphs whose relations are new too, zero-shot:\n\n"
    table += markdown_table(
        ("data set", "ULTRA", "our shipped model"),
        [
            (name, number_cell(theirs), _zero_shot_cell(zero_shot, name))
            for name, theirs in FULLY_INDUCTIVE.items()
        ],
    )
    words = [
        "MRR / hits@10 of models trained on each graph (the paper's appendix leaves FB15k-237 "
        "out), then MRR of one model that has never seen the graph. ULTRA's zero-shot figures are "
        "those printed for its model of three graphs (Galkin et al., ICLR 2024). Zero-shot figures "
        f"of ours are pessimistic, as theirs are, from `{COMMAND}`. A star: the graph shares facts "
        "with those that the shipped model was trained on.",
        *_means(zero_shot),
    ]
    return Section("Beside ULTRA", words, table)


KEYS = ("mrr", "hits@10")


def _mean(summary: Summary | None, key: str) -> float | None:
    estimate = summary.estimate(key) if summary else None
    return estimate.mean if estimate else None


def _pair(mrr: float | None, hits: float | None) -> str:
    return "-" if mrr is None else f"{number_cell(mrr)} / {number_cell(hits)}"


def _zero_shot_cell(zero_shot: ZeroShot, name: str) -> str:
    if name not in zero_shot:
        return "-"
    star = r"\*" if zero_shot[name]["shares_facts_with_training"] else ""
    return f"{zero_shot[name]['pessimistic']['mrr']:.3f}{star}"


def _means(zero_shot: ZeroShot) -> list[str]:
    """Mean MRR of both models over the graphs of a kind."""
    parts: list[str] = []
    groups = {
        "inductive graphs": INDUCTIVE,
        "of these that share no fact with its training": {
            name: theirs
            for name, theirs in INDUCTIVE.items()
            if name in zero_shot and not zero_shot[name]["shares_facts_with_training"]
        },
        "graphs with new relations": FULLY_INDUCTIVE,
    }
    for title, printed in groups.items():
        names = [name for name in printed if name in zero_shot]
        if names:
            ours = fmean(zero_shot[name]["pessimistic"]["mrr"] for name in names)
            theirs = fmean(printed[name] for name in names)
            parts.append(f"{len(names)} {title}: {ours:.3f} (ULTRA {theirs:.3f})")
    return [f"**Mean zero-shot MRR:** {'; '.join(parts)}."] if parts else []
