"""Strings in arrays against lists of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.errors import BundleError
from knowformer.graph.stored_names import StoredNames, StoredStrings, packed_strings
from knowformer.graph.vocabulary import Vocabulary


def stored(names: list[str]) -> StoredNames:
    keys = Vocabulary(names, kind="entity").keys()
    return StoredNames(*packed_strings(names), keys, keys.argsort())


@given(st.lists(st.text(max_size=5), max_size=8))
def test_strings_are_those_that_were_packed(texts: list[str]) -> None:
    strings = StoredStrings(*packed_strings(texts))
    assert list(strings) == texts
    assert [strings[number] for number in range(-len(texts), 0)] == texts
    assert strings[1:3] == texts[1:3]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=8, unique=True))
def test_a_name_is_found_where_it_stands(names: list[str]) -> None:
    found = stored(names)
    assert [found.find(name) for name in names] == list(range(len(names)))
    for other in ("longer than any", "\ud800", 3, None):
        assert found.find(other) is None


def test_a_vocabulary_of_stored_names_is_like_another() -> None:
    names = ["ann", "bob", "ünal"]
    vocabulary, other = (
        Vocabulary.of_stored(stored(names), kind="entity"),
        Vocabulary(names, kind="entity"),
    )
    for mine, theirs in ((vocabulary, other), (vocabulary.extended("c"), other.extended("c"))):
        assert mine == theirs
        assert hash(mine) == hash(theirs)
        assert list(mine.names) == list(theirs.names)
        assert mine.names[-1] == theirs.names[-1]
        assert list(mine.names[1:]) == list(theirs.names[1:])
        assert mine.keys().tolist() == theirs.keys().tolist()
        assert ["c" in mine, mine.id("ünal")] == ["c" in theirs, 2]
    assert vocabulary.extended(["d"]).extended(["e"]).id("e") == 4
    assert "e" not in vocabulary


def test_bytes_that_are_no_text_are_refused() -> None:
    strings = StoredStrings(np.full(2, 255, dtype=np.uint8), np.array([0, 2]))
    for read in (list, lambda some: some[0]):
        with pytest.raises(BundleError, match="Expected names in UTF-8"):
            read(strings)
