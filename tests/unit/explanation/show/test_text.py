import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.explanation.show.text import shorten


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("isa", "isa"),
        ("interacts_with", "interacts with"),
        ("body_part_organ_or_component", "body part organ\nor component"),
        ("neuroreactive_substance_or_biogenic_amine", "neuroreactive …\namine"),
        ("release date s - film release region", "release date s …\nregion"),
        ("x" * 60, "x" * 16 + "\nxxx … xxxxxxxxx"),
    ],
)
def test_long_names_are_shortened_readably(name: str, shown: str) -> None:
    assert shorten(name, 16) == shown


@given(st.text(max_size=80), st.integers(4, 30), st.integers(1, 3))
def test_shortened_names_fit(name: str, width: int, lines: int) -> None:
    assert all(len(line) <= max(width, 1) for line in shorten(name, width, lines).split("\n")) or (
        not name.strip()
    )
