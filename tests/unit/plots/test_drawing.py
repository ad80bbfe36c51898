import io

import pytest

from knowformer.plots.drawing import LONGEST, drawing, title_of

NAMES = [
    "$x_1$",
    "$\\frac{",
    "\\frac{",
    "a $ b",
    "{\\bf x}",
    "$$",
    "%s {0}",
    "\u4e2d\u6587",
    "\U0001f600",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_drawn_whatever_it_is(name: str) -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    with drawing():
        figure = figure_module.Figure(figsize=(1, 1))
        figure.add_subplot().set_title(title_of(name))
        figure.savefig(io.BytesIO(), format="svg")


def test_a_title_is_one_line_of_a_length_that_fits() -> None:
    assert title_of("a\nb\x1b[1m") == "a\\nb\\x1b[1m"
    assert len(title_of("x" * 100_000)) == LONGEST
