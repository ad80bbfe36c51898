from pathlib import Path

import numpy as np
import pytest

from knowformer.data.readers.rows import BadRows, Chunk
from knowformer.data.readers.times import TimeColumn
from knowformer.errors import DataError


def parse(
    *texts: str, column: TimeColumn | None = None, skip: bool = False
) -> tuple[list[float], list[bool]]:
    wanted = np.ones(len(texts), dtype=bool)
    chunk = Chunk(Path("f.csv"), (texts,), range(1, len(texts) + 1))
    times = (column or TimeColumn()).parse(chunk, wanted, BadRows(skip=skip))
    return times.tolist(), wanted.tolist()


def test_numbers_are_taken_as_they_are_and_shown_as_they_were() -> None:
    column = TimeColumn()
    assert parse("3", " 2.5", "-1e3", column=column)[0] == [3.0, 2.5, -1000.0]
    assert [column.show(value) for value in (3.0, 2.5, -1000.0)] == ["3", "2.5", "-1000"]


def test_dates_are_seconds_and_a_month_is_its_first_day() -> None:
    column = TimeColumn()
    texts = ("2024-05", "2024-05-01", "2024-05-01T02:00+02:00", "2024-05-01T00:00:01Z")
    times = parse(*texts, column=column)[0]
    assert times[0] == times[1] == times[2] == times[3] - 1
    assert column.show(times[0]) == "2024-05-01"
    assert column.show(times[3]) == "2024-05-01T00:00:01Z"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("2024-05-31", "7"), r"an ISO 8601 date as time, got '7' at f.csv:2\."),
        (("7", "2024-05-31"), r"a number as time, got '2024-05-31' at f.csv:2\."),
        (("7", "nan"), "a number as time, got 'nan'"),
        (("soon",), "an ISO 8601 date as time, got 'soon'"),
    ],
)
def test_a_time_of_another_kind_is_refused_or_left_out(
    texts: tuple[str, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        parse(*texts)
    assert parse(*texts, skip=True)[1][-1] is False
