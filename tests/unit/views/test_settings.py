"""Settings of views, and the same in whole numbers."""

import pytest
from pydantic import ValidationError

from knowformer.views.settings import MASS, PARTS, Rules, ViewSettings


@pytest.mark.parametrize(
    "wrong", [{"size": 0}, {"alpha": 1.0}, {"prior_weight": -0.1}, {"tolerance": 0.0}, {"k": 3}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ViewSettings(**{"size": 10, **wrong})


def test_rules_are_the_settings_in_fixed_point() -> None:
    rules = Rules.of(ViewSettings(size=1000, alpha=0.5, prior_weight=0.25, tolerance=0.5))
    assert rules == Rules(1000, MASS, PARTS // 2, PARTS, MASS // 4, round(MASS / 2000))


def test_no_product_of_rules_passes_64_bits() -> None:
    rules = Rules.of(ViewSettings(size=1, alpha=0.9999999, prior_weight=16.0, tolerance=1e9))
    assert rules.mass * rules.alpha < 2**63
    assert rules.tolerance * (2**31 - 1) < 2**63  # edges are counted in 32 bits
    assert rules.mass + rules.prior < 2**63
    assert Rules.of(ViewSettings(size=1, tolerance=1e-300)).tolerance == 1
