import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.explanation.show.text import same_decimals, shorten


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


def test_numbers_of_a_column_have_the_same_decimals() -> None:
    assert same_decimals([0.0214, 0.002, 0.00957]) == ["0.0214", "0.0020", "0.0096"]
    assert same_decimals([123.4, 7.0]) == ["123", "7"]
    assert same_decimals([0.0]) == ["0.000"]
    assert same_decimals([]) == []
