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
