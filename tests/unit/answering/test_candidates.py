from pathlib import Path

import pytest

from knowformer.answering.answerer import Answerer
from knowformer.answering.candidates import find_candidates
from knowformer.data.labels import Labels
from knowformer.errors import ConfigError, DataError, VocabularyError
from knowformer.graph.knowledge_graph import KnowledgeGraph


def names_of(graph: KnowledgeGraph, ids: tuple[int, ...] | None) -> set[str] | None:
    return None if ids is None else {graph.entities.names[number] for number in ids}


def test_candidates_are_those_of_a_list_of_a_file_or_of_a_type(
    family: KnowledgeGraph, tmp_path: Path
) -> None:
    labels = Labels({"ann": "Ann Archer"})
    file = tmp_path / "some.txt"
    file.write_text("bob\n\nAnn Archer\n", "utf-8")
    assert find_candidates(family, labels) is None
    for names in (["Ann Archer", "bob"], file, str(file)):
        assert names_of(family, find_candidates(family, labels, names=names)) == {"ann", "bob"}
    for of_type, expected in {
        "mother_of:head": {"ann", "eve"},
        "mother_of:tail": {"ann", "bob", "cid"},
        "brother_of=bob": {"cid"},
    }.items():
        assert names_of(family, find_candidates(family, labels, of_type=of_type)) == expected
    both = find_candidates(family, labels, names=file, of_type="mother_of:head")
    assert names_of(family, both) == {"ann"}


def test_what_cannot_be_found_is_told_with_what_is_near(
    family: KnowledgeGraph, tmp_path: Path
) -> None:
    file = tmp_path / "some.txt"
    file.write_text("bobb\nann\nxyz\n", "utf-8")
    with pytest.raises(VocabularyError, match=r"2 of 3 candidates in .*some.txt.*'bob'.*'xyz'"):
        find_candidates(family, Labels(), names=file)
    with pytest.raises(ConfigError, match="R:head"):
        find_candidates(family, Labels(), of_type="mother_of")
    with pytest.raises(DataError, match="found none"):
        find_candidates(family, Labels(), names=["zoe"], of_type="mother_of:head")


def test_only_candidates_are_ranked_as_they_are_among_all(answerer: Answerer) -> None:
    question = answerer.question(head="ann", relation="mother_of")
    (whole,) = answerer.answer([question], answerer.options(k=9))
    among = answerer.options(k=9, candidates=["dan", "zoe", "bob"])
    (some,) = answerer.answer([question], among)
    kept = [a for a in whole.answers if a.name in {"dan", "zoe", "bob"}]
    assert [(a.name, a.score, a.known) for a in some.answers] == [
        (a.name, a.score, a.known) for a in kept
    ]
    assert [a.probability for a in some.answers] == pytest.approx([a.probability for a in kept])
    assert (some.num_candidates, some.num_known) == (3, 1)
    new = answerer.missing_facts("mother_of", k=9, among=among.among)
    assert {fact.tail for fact in new.facts} <= {"dan", "zoe", "bob"}
    assert new.num_candidates == 2 * 3 - 1


def test_typical_ranks_are_those_of_other_heads(answerer: Answerer) -> None:
    question = answerer.question(head="ann", relation="mother_of")
    (shown,) = answerer.answer([question], answerer.options(k=9, typical=True))
    # Of the relation's two heads the other one is eve.
    other = answerer.question(head="eve", relation="mother_of")
    (of_eve,) = answerer.answer([other], answerer.options(k=9))
    ranks = {answer.name: answer.rank for answer in of_eve.answers}
    assert {answer.name: answer.typical_rank for answer in shown.answers} == ranks
    assert "typical rank" in {column.name for column in shown.table().columns}
    alone = answerer.question(head="bob", relation="married_to")
    (none,) = answerer.answer([alone], answerer.options(typical=True))
    assert none.answers[0].typical_rank is not None  # ann is a head, bob is not
