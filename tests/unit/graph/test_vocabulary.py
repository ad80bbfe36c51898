import numpy as np
import pytest

from knowformer.errors import VocabularyError
from knowformer.graph.vocabulary import Vocabulary


def test_names_are_numbered_in_order_of_first_appearance() -> None:
    vocabulary = Vocabulary(["b", "a", "b", "c", "a"], kind="entity")
    assert list(vocabulary) == ["b", "a", "c"]
    assert [vocabulary.id(name) for name in vocabulary] == [0, 1, 2]
    assert len(vocabulary) == 3
    assert "a" in vocabulary
    assert "d" not in vocabulary


def test_vocabularies_are_equal_when_names_and_order_are() -> None:
    first = Vocabulary(["a", "b"], kind="entity")
    assert first == Vocabulary(iter(["a", "b", "a"]), kind="entity")
    assert hash(first) == hash(Vocabulary(["a", "b"], kind="entity"))
    assert first != Vocabulary(["b", "a"], kind="entity")


def test_an_unknown_name_is_answered_with_near_spellings() -> None:
    vocabulary = Vocabulary(["aspirin", "warfarin"], kind="entity")
    with pytest.raises(VocabularyError, match=r"2 entity names, got 'asprin'.*'aspirin'\?$"):
        vocabulary.id("asprin")


def test_few_names_are_listed_when_none_is_near_and_many_are_not() -> None:
    with pytest.raises(VocabularyError, match=r"Known: treats, causes\.$"):
        Vocabulary(["treats", "causes"], kind="relation").id("qqqq")
    many = [f"r{number}" for number in range(500)]
    with pytest.raises(VocabularyError, match=r"Known: r0, r1, .*, r11 and 488 more\.$"):
        Vocabulary(many, kind="relation").id("qqqq")
    with pytest.raises(VocabularyError, match=r"got 'qqqq'\.$"):
        Vocabulary(many, kind="entity").id("qqqq")


def test_keys_follow_names_not_numbers() -> None:
    keys = Vocabulary(["a", "b", "c"], kind="entity").keys()
    assert np.array_equal(Vocabulary(["c", "a", "b"], kind="entity").keys(), keys[[2, 0, 1]])


def test_a_vocabulary_grows_without_changing_those_before() -> None:
    first = Vocabulary(["a", "b"], kind="entity")
    before = first.keys()
    second = first.extended(["b", "c", "c"])
    assert list(first) == ["a", "b"]
    assert list(second) == ["a", "b", "c"]
    assert second.id("c") == 2
    assert "c" not in first
    with pytest.raises(VocabularyError, match="2 entity names, got 'c'"):
        first.id("c")
    assert first != second
    assert second == Vocabulary(["a", "b", "c"], kind="entity")
    assert np.array_equal(second.keys(), Vocabulary(["a", "b", "c"], kind="entity").keys())
    assert np.array_equal(first.keys(), before)
    assert second.extended(["a"]) is second


def test_two_vocabularies_may_grow_from_one() -> None:
    first = Vocabulary(["a"], kind="entity")
    second, third = first.extended(["b"]), first.extended(["c", "b"])
    assert [list(names) for names in (first, second, third)] == [["a"], ["a", "b"], ["a", "c", "b"]]
    assert (second.id("b"), third.id("b")) == (1, 2)
    assert second != first.extended(["c"])
    assert second == first.extended(["b"])
    assert "c" not in second


def test_keys_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Vocabulary(["a"], kind="entity").keys()[0] = 1
