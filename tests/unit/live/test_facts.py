"""Changes as they are given, stored, listed and undone."""

from contextlib import closing
from pathlib import Path

import pytest

from knowformer.errors import ConfigError, ConflictError, VocabularyError
from knowformer.live.database import Database
from knowformer.live.facts import (
    MAX_NAME,
    MAX_TEXT,
    Change,
    check_change,
    find_changes,
    insert_changes,
    read_changes,
    read_page,
    undoing,
)

TIME = "2026-01-01T00:00:00.000Z"
ODD = (
    "tab\t, break\n, null\0, bell\a, $(rm -rf), %s, '\"; DROP TABLE changes; --, \u202e, \U0001d518"
)


def test_names_of_any_content_are_kept_as_they_are(tmp_path: Path) -> None:
    change = Change(ODD, "next", ODD + "2", why=ODD, source=ODD)
    check_change(change)
    with closing(Database(tmp_path / "live.sqlite")) as database:
        with database.transaction() as connection:
            (stored,) = insert_changes(connection, [change], author=ODD, time=TIME)
        assert [stored] == list(read_changes(database))
    assert (stored.id, stored.fact, stored.author) == (1, change.fact, ODD)
    assert (stored.why, stored.source, stored.undone) == (ODD, ODD, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Change("", "next", "b"), "a name as head, got ''"),
        (Change("a", "next", " \t"), "a name as tail"),
        (Change("a", "next", "b" * (MAX_NAME + 1)), "at most 2,000 characters as tail, got 2,001"),
        (Change("a", "next", "b", why="x" * (MAX_TEXT + 1)), "characters as why"),
        (Change("a", "next", "\udc00"), "Unicode text as tail"),
        (Change("a", "next", "b", "drop"), "'add' or 'remove' as action"),  # pyright: ignore
    ],
)
def test_what_cannot_be_stored_is_refused(change: Change, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_change(change)


def test_pages_follow_each_other_from_the_newest_on(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "live.sqlite")) as database:
        with database.transaction() as connection:
            changes = [Change(f"e{number}", "next", "b") for number in range(5)]
            insert_changes(connection, changes, author=None, time=TIME)
        seen, before = [], None
        for size in (2, 2, 1):
            page = read_page(database, limit=2, before=before)
            assert len(page.items) == size
            seen += [change.id for change in page.items]
            before = page.next
        assert (seen, before) == ([5, 4, 3, 2, 1], None)
        for number in (-(10**30), 0):
            assert read_page(database, limit=2, before=number).items == []
        assert len(read_page(database, limit=9, before=10**30).items) == 5
        for limit in (0, 1001):
            with pytest.raises(ConfigError, match="Expected a limit from 1 to 1,000"):
                read_page(database, limit=limit, before=None)


def test_only_the_last_change_of_a_fact_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "live.sqlite"
    with closing(Database(path)) as database, database.transaction() as connection:
        steps = [Change("a", "next", "b"), Change("a", "next", "b", "remove")]
        first, second = insert_changes(connection, steps, author=None, time=TIME)
        with pytest.raises(ConflictError, match=r"which is 2, got 1\. Undo 2"):
            undoing(connection, first)
        back = undoing(connection, second)
        assert (back.action, back.fact) == ("add", second.fact)
        insert_changes(connection, [back], author=None, time=TIME, undoes=second.id)
        found = find_changes(connection, [1, None, 2, 3])
        assert [change and (change.undoes, change.undone_by) for change in found] == [
            *((None, None), None, (None, 3), (2, None)),
        ]
        for number in (0, -1, 4, 10**30):
            with pytest.raises(VocabularyError, match=f"got {number}, which none has"):
                find_changes(connection, [number])
