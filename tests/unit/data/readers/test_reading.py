from pathlib import Path

from knowformer.data.readers.columns import Layout
from knowformer.data.readers.reading import FileLabels, Reading


def test_the_first_name_of_an_id_stays_but_a_preferred_one_goes_before_it() -> None:
    labels = FileLabels()
    labels.add("a", "Anne", is_preferred=False)
    labels.add("a", "Anna", is_preferred=False)
    assert labels.names == {"a": "Anne"}
    labels.add("a", " Ann\n of\tX ")
    labels.add("a", "Annie")
    labels.add("b", "  ")
    assert labels.names == {"a": "Ann of X"}


def test_a_first_line_without_a_header_is_remembered_without_its_time() -> None:
    reading, path = Reading(), Path("f.csv")
    roles = ("head", "relation", "tail", "time")
    reading.note_layout(
        path, Layout(",", '"', False, ["x", "c", "b", "a", "9"], roles, (3, 2, 1, 4))
    )
    reading.note_layout(path, Layout(",", '"', True, ["h", "r", "t"], roles[:3], (0, 1, 2)))
    assert reading.first_rows == [(path, ["a", "b", "c"])]
    assert reading.notes[1] == (
        "f.csv: comma-separated, the first line is a header; head = h, relation = r, tail = t."
    )
