"""A change that is not meant to change numbers must not change these.

The curves of 200 steps take minutes, and most need benchmark data: they are compared where
$KNOWFORMER_DATA is set, or by ``python -m tests.golden.curves check``.
"""

import os
from dataclasses import replace

import pytest

from knowformer.data import catalog
from tests.golden.curves import (
    CURVES,
    FOLDER,
    NATIONS,
    NATIONS_IN_REGIONS,
    Curve,
    Numbers,
    compare,
    path_of,
    run,
)

pytestmark = pytest.mark.golden

QUICK = [NATIONS, NATIONS_IN_REGIONS]


def has_data(name: str) -> bool:
    is_set = bool(os.environ.get("KNOWFORMER_DATA"))
    return is_set and catalog.locate(catalog.find(name)) is not None


LONG = [
    pytest.param(
        curve,
        id=curve.name,
        marks=pytest.mark.skipif(
            not has_data(curve.dataset), reason=f"no $KNOWFORMER_DATA with {curve.dataset}"
        ),
    )
    for curve in CURVES.values()
    if curve not in QUICK
]


@pytest.fixture(scope="module")
def nations() -> Numbers:
    return run(NATIONS)


def test_every_curve_has_a_record_and_every_record_a_curve() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        path_of(curve).name for curve in CURVES.values()
    }


def test_twenty_steps_have_the_numbers_of_the_record_and_equal_bits_twice(nations: Numbers) -> None:
    assert not compare(NATIONS, nations).differs
    assert len(nations.losses) == NATIONS.steps
    assert run(NATIONS) == nations


def test_steps_in_regions_have_the_numbers_of_the_record() -> None:
    assert not compare(NATIONS_IN_REGIONS, run(NATIONS_IN_REGIONS)).differs


@pytest.mark.slow
@pytest.mark.dataset
@pytest.mark.parametrize("curve", LONG)
def test_a_long_curve_has_the_numbers_of_its_record(curve: Curve) -> None:
    assert not compare(curve, run(curve)).differs


def test_a_comparison_says_what_differs(nations: Numbers) -> None:
    losses = [*nations.losses[:4], *(1.01 * loss for loss in nations.losses[4:])]
    found = compare(NATIONS, replace(nations, losses=losses))
    assert found.differs == "losses"
    assert found.largest_difference == pytest.approx(0.01, rel=0.05)
    shorter = compare(NATIONS, replace(nations, losses=nations.losses[:-1]))
    assert shorter.differs.startswith("number of steps")
    changed: Curve = replace(NATIONS, settings=(*NATIONS.settings, "training.hide=links"))
    assert compare(changed, nations).differs == "settings"
