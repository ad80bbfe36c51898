from pathlib import Path

import numpy as np
import pytest

from knowformer.data.fact_table import FactTableBuilder, first_occurrences
from knowformer.data.readers.rows import BadRows, Chunk
from knowformer.errors import DataError


def chunk(*rows: tuple[str, ...]) -> Chunk:
    columns = tuple(zip(*rows, strict=True))
    return Chunk(Path("f.tsv"), columns, range(1, len(rows) + 1))


def test_names_are_numbered_by_first_appearance_over_all_chunks() -> None:
    builder = FactTableBuilder(BadRows())
    builder.add(chunk(("b", "r", "a"), ("b", "r", "a")))
    builder.add(chunk(("a", "s", "c"), ("b", "r", "a")))
    table = builder.finish()
    # Heads of a chunk come before its tails.
    assert (table.entities, table.relations) == (["b", "a", "c"], ["r", "s"])
    assert table.facts.tolist() == [[0, 0, 1], [1, 1, 2]]
    assert (table.num_rows, table.num_repeated) == (4, 2)


def test_of_a_fact_with_several_times_the_earliest_counts() -> None:
    builder = FactTableBuilder(BadRows(), with_times=True)
    builder.add(chunk(("a", "r", "b", "5"), ("a", "r", "c", "4"), ("a", "r", "b", "3")))
    table = builder.finish()
    named = [(table.entities[h], table.entities[t]) for h, _, t in table.facts.tolist()]
    assert named == [("a", "b"), ("a", "c")]
    assert table.times is not None
    assert table.times.tolist() == [3.0, 4.0]


def test_a_name_that_cannot_be_stored_is_refused_or_skipped_wherever_it_occurs() -> None:
    rows = chunk(("a", "r", "b"), ("a\t", "r", "b"), ("b", " ", "a"))
    with pytest.raises(DataError, match=r"as head, got 'a\\t' at f.tsv:2\."):
        FactTableBuilder(BadRows()).add(rows)
    bad_rows = BadRows(skip=True)
    builder = FactTableBuilder(bad_rows)
    builder.add(rows)
    builder.add(chunk(("b", "r", "a\t")))
    assert len(builder.finish().facts) == 1
    assert [row.place for row in bad_rows.rows] == ["f.tsv:2", "f.tsv:3", "f.tsv:1"]


def test_nothing_read_is_an_empty_table() -> None:
    table = FactTableBuilder(BadRows(), with_times=True).finish()
    assert table.facts.shape == (0, 3)


@pytest.mark.parametrize("scale", [1, 2**28])
def test_first_occurrences_are_those_of_a_dictionary(scale: int) -> None:
    facts = np.random.default_rng(0).integers(3, size=(60, 3)) * [scale, 1, scale]
    expected = [i for i, f in enumerate(facts.tolist()) if f not in facts[:i].tolist()]
    assert first_occurrences(facts).tolist() == expected
