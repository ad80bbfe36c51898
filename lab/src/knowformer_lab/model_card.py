"""The scores in the shipped model's card, written from stored zero-shot figures.

python -m knowformer_lab.model_card lab/experiments
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

from knowformer.runs.shipped import SHIPPED_FOLDER
from knowformer.storage.atomic_files import write_text
from knowformer_lab.report.cells import markdown_table
from knowformer_lab.report.ultra_section import ZeroShot, read_zero_shot
from knowformer_lab.zero_shot import FULLY_INDUCTIVE, INDUCTIVE

CARD = SHIPPED_FOLDER / "MODEL_CARD.md"
START, END = "## How good it is, without training\n", "## Limits\n"
TITLES = {
    "fully inductive": FULLY_INDUCTIVE,
    "inductive, relations of known graphs": INDUCTIVE,
}
WORDS = """
MRR of all test facts, asked both ways; pessimistic ranks, as the printed figures of ULTRA (trained
on three graphs) are. "Trained on": the share of the graph's facts that the model saw in training,
in one of the graphs above. ULTRA saw those of FB15k-237, WN18RR and CoDEx-M too.

"""


def scores_section(found: ZeroShot) -> str:
    """Returns the card's tables."""
    tables = [_table(title, printed, found) for title, printed in TITLES.items()]
    return f"{START}{WORDS}{''.join(tables)}"


def mean_mrr(found: ZeroShot, names: Iterable[str]) -> float:
    """Returns the mean of pessimistic MRR over data sets."""
    return fmean(found[name]["pessimistic"]["mrr"] for name in names)


def _table(title: str, printed: Mapping[str, float], found: ZeroShot) -> str:
    rows = [
        (
            f"`{name}`",
            f"{found[name]['pessimistic']['mrr']:.3f}",
            f"{found[name]['realistic']['mrr']:.3f}",
            f"{found[name]['pessimistic']['hits@10']:.3f}",
            f"{theirs:.3f}",
            f"{found[name]['share_of_facts_trained_on']:.1%}",
        )
        for name, theirs in printed.items()
    ]
    groups = {
        "mean": list(printed),
        "mean of those without a fact trained on": [
            name for name in printed if not found[name]["shares_facts_with_training"]
        ],
    }
    means = [
        (words, f"{mean_mrr(found, of):.3f}", "", "", f"{fmean(printed[n] for n in of):.3f}", "")
        for words, of in groups.items()
    ]
    header = (title, "MRR", "realistic", "hits@10", "ULTRA", "trained on")
    return markdown_table(header, rows + means) + "\n"


def with_scores(card: str, found: ZeroShot) -> str:
    """Returns a card with its scores replaced."""
    before, rest = card.split(START)
    return before + scores_section(found) + END + rest.split(END)[1]


def main() -> None:
    """Writes the card."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiments", type=Path, help="the folder of zero_shot.json")
    found = read_zero_shot(parser.parse_args().experiments)
    write_text(CARD, with_scores(CARD.read_text(encoding="utf-8"), found))


if __name__ == "__main__":
    main()
