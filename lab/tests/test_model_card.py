from pathlib import Path

import pytest

from knowformer_lab.model_card import CARD, mean_mrr, with_scores
from knowformer_lab.report.ultra_section import read_zero_shot
from knowformer_lab.zero_shot import FULLY_INDUCTIVE, INDUCTIVE

LAB = Path(__file__).parents[1]


def test_the_card_has_the_stored_scores() -> None:
    card = CARD.read_text(encoding="utf-8")
    assert with_scores(card, read_zero_shot(LAB / "experiments")) == card


@pytest.mark.parametrize("names", [FULLY_INDUCTIVE, INDUCTIVE])
def test_the_readme_has_the_means(names: dict[str, float]) -> None:
    readme = (LAB.parent / "README.md").read_text(encoding="utf-8")
    mean = mean_mrr(read_zero_shot(LAB / "experiments"), names)
    assert f"{mean:.3f}" in readme
