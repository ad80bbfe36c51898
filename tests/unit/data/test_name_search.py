"""Names as they are typed: whole, begun, by their words, misspelt."""

import pytest

from knowformer.data.name_search import NameSearch

NAMES = ["Q1", "Q2", "acetylsalicylic_acid", "salicylic acid", "Aspirin 100 mg", "Café Noir", "q"]
LABELS = {"Q1": "Aspirin", "Q2": "Marie Curie", "unheard of": "Aspirin"}


@pytest.fixture(scope="module")
def search() -> NameSearch:
    return NameSearch(NAMES, LABELS)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("aspirin", [("Q1", "exact"), ("Aspirin 100 mg", "prefix")]),
        ("ASP", [("Q1", "prefix"), ("Aspirin 100 mg", "prefix")]),
        (" cafe noir ", [("Café Noir", "exact")]),
        ("q1", [("Q1", "exact")]),
        ("acid", [("salicylic acid", "word"), ("acetylsalicylic_acid", "word")]),
        ("cur mar", [("Q2", "word")]),
        ("asprin", [("Q1", "similar"), ("Aspirin 100 mg", "similar")]),
        ("salycilic acid", [("salicylic acid", "similar"), ("acetylsalicylic_acid", "similar")]),
        ("Mary Curie", [("Q2", "similar")]),
        ("xyzzy", []),
        ("_", []),
        ("\0", []),
    ],
)
def test_names_and_readable_names_are_found(
    search: NameSearch, typed: str, found: list[tuple[str, str]]
) -> None:
    matches = search.search(typed)
    assert [(match.name, match.how) for match in matches] == found
    assert all(match.label == LABELS.get(match.name) for match in matches)


def test_the_best_come_first_and_no_more_than_asked_for(search: NameSearch) -> None:
    assert [match.name for match in search.search("q")] == ["q", "Q1", "Q2"]
    assert [match.name for match in search.search("q", limit=2)] == ["q", "Q1"]
    assert [match.name for match in search.search(" ", limit=3)] == NAMES[:3]
    assert search.search("x" * 100_000) == []


def test_new_names_are_found_beside_the_old_ones_and_only_in_the_new_index() -> None:
    first = NameSearch(["name 0"])
    grown = first
    for number in range(1, 40):
        grown = grown.with_names([f"name {number}"])
    assert {match.name for match in grown.search("name", limit=50)} == {
        f"name {number}" for number in range(40)
    }
    assert [match.name for match in grown.search("name 7")][:1] == ["name 7"]
    assert [match.name for match in first.search("name")] == ["name 0"]
    assert first.with_names([]) is first
    assert NameSearch([]).search("a") == NameSearch([]).search("") == []
