"""Questions: names to ids, and what is no question."""

import pytest

from knowformer.answering.questions import Question, build_question, question_parts
from knowformer.data.labels import Labels
from knowformer.errors import ConfigError, VocabularyError
from knowformer.graph.knowledge_graph import KnowledgeGraph


def test_names_and_readable_names_become_ids(family: KnowledgeGraph):
    labels = Labels({"ann": "Ann Archer"}, {})
    ann, mother = family.entities.names.index("ann"), family.relations.names.index("mother_of")
    for head in ("ann", "Ann Archer"):
        asked = build_question(family, labels, head=head, relation="mother_of", tail=None)
        assert asked == Question(ann, mother, None)
        assert asked.asks_for == "tail"
    asked = build_question(family, labels, head=None, relation="mother_of", tail="bob")
    assert asked.asks_for == "head"
    assert build_question(family, labels, head="ann", relation=None, tail="bob").asks_for == (
        "relation"
    )


@pytest.mark.parametrize(
    ("names", "number"), [(("ann", None, None), 1), (("ann", "mother_of", "bob"), 3)]
)
def test_two_of_three_are_expected(
    names: tuple[str | None, ...], number: int, family: KnowledgeGraph
):
    given = dict(zip(("head", "relation", "tail"), names, strict=True))
    with pytest.raises(ConfigError, match=f"two of head, relation and tail.* got {number}"):
        build_question(family, Labels(), **given)


def test_an_unknown_name_is_refused_with_its_neighbours(family: KnowledgeGraph):
    with pytest.raises(VocabularyError, match="'mother_of'"):
        build_question(family, Labels(), head="ann", relation="mother_off", tail=None)


@pytest.mark.parametrize(
    "given", [("a", "r"), ["a", "r", "?"], {"head": "a", "relation": "r"}, ("a", "r", None)]
)
def test_a_question_may_be_written_in_several_ways(given: object):
    assert question_parts(given) == {"head": "a", "relation": "r", "tail": None}


@pytest.mark.parametrize("given", ["a", ("a",), ("a", "r", "t", "u"), {"haed": "a"}, ("a", 1), 5])
def test_what_is_no_question_is_refused(given: object):
    with pytest.raises(ConfigError, match="Expected"):
        question_parts(given)
