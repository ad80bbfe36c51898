"""Verdicts as they are given, stored, listed and taken back."""

from contextlib import closing
from pathlib import Path

import pytest

from knowformer.errors import ConfigError, VocabularyError
from knowformer.live.database import Database
from knowformer.live.decisions import (
    Decision,
    check_decision,
    find_decision,
    insert_decision,
    read_decisions,
    read_page,
    take_back,
)

TIME, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
GIVEN = Decision("a", "next", "b", "unsure", note="ask\tAnn", rank=2, probability=0.25)


def test_a_decision_is_stored_listed_and_marked_when_it_is_taken_back(tmp_path: Path) -> None:
    check_decision(GIVEN)
    with closing(Database(tmp_path / "live.sqlite")) as database:
        with database.transaction() as connection:
            how = {"author": "Ann", "time": TIME, "snapshot": 7, "fact_id": None}
            first, second = (insert_decision(connection, GIVEN, **how) for _ in range(2))
            assert find_decision(connection, first.id) == first
            undone = take_back(connection, first, time=LATER)
            assert take_back(connection, undone, time=TIME) == undone
            with pytest.raises(VocabularyError, match="number of a decision, got 9, which none"):
                find_decision(connection, 9)
        assert (undone.undone, undone.fact_id, undone.snapshot) == (LATER, None, 7)
        assert list(read_decisions(database)) == [undone, second]
        page = read_page(database, limit=1, before=None)
        assert (page.items, page.next) == ([second], second.id)
        assert read_page(database, limit=1, before=page.next).items == [undone]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"verdict": "perhaps"}, "'accept', 'reject' or 'unsure' as verdict, got 'perhaps'"),
        ({"tail": ""}, "a name as tail"),
        ({"rank": 0}, "a rank from 1, got 0"),
        ({"rank": 2**63}, "a rank from 1"),
        ({"probability": 1.5}, "a probability from 0 to 1, got 1.5"),
        ({"probability": float("nan")}, "a probability from 0 to 1, got nan"),
        ({"note": "x" * 10_001}, "at most 10,000 characters as note"),
    ],
)
def test_what_cannot_be_stored_is_refused(wrong: dict[str, object], message: str) -> None:
    given = {"head": "a", "relation": "next", "tail": "b", "verdict": "accept"} | wrong
    with pytest.raises(ConfigError, match=message):
        check_decision(Decision(**given))  # pyright: ignore
