from pathlib import Path

import pytest

from knowformer.data.readers.columns import (
    Dialect,
    choose_columns,
    find_named_columns,
    named_layout,
)
from knowformer.errors import ConfigError, DataError

FACTS = ("head", "relation", "tail")
PATH = Path("f.csv")


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["subject", "predicate", "object"], (0, 1, 2)),
        (["Object", "x", "Subject_ID", "predicate"], (2, 3, 0)),
        (["head", "source", "relation", "tail"], (0, 2, 3)),  # the exact word before another
        (["source", "subject", "relation", "tail"], None),  # two that may be the head
        (["a", "b", "c"], None),
    ],
)
def test_well_known_names_say_which_column_is_which(
    names: list[str], columns: tuple[int, ...] | None
) -> None:
    assert find_named_columns(names, FACTS) == columns


def test_without_known_names_the_columns_beside_the_time_count_in_order() -> None:
    assert choose_columns(PATH, ["a", "when", "b", "c"], Dialect(time="when")) == (0, 2, 3, 1)
    assert choose_columns(PATH, ["a", "b", "c"], Dialect(), has_header=False) == (0, 1, 2)


def test_an_option_goes_before_names() -> None:
    layout = named_layout(
        PATH, ["head", "relation", "tail"], Dialect(columns=("tail", "2", "1")), FACTS
    )
    assert layout.indices == (2, 1, 0)
    assert layout.describe() == "head = tail, relation = relation, tail = head"


@pytest.mark.parametrize(
    ("dialect", "error", "message"),
    [
        (Dialect(columns=("a", "b")), ConfigError, "Expected 3 columns .* got 2: a,b"),
        (Dialect(columns=("a", "b", "a")), ConfigError, "3 different columns"),
        (Dialect(columns=("a", "b", "bb")), DataError, "Did you mean 'b'"),
        (Dialect(columns=("1", "2", "5")), DataError, "from 1 to 4, got 5"),
        (Dialect(), DataError, "got 4 in f.csv: 'a', 'b', 'c', 'd'. Say which ones with `columns`"),
    ],
)
def test_columns_that_cannot_be_are_refused(
    dialect: Dialect, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        choose_columns(PATH, ["a", "b", "c", "d"], dialect)
