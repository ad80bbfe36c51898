"""Answerer: names in, names out, and a fingerprint of all that answers depend on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from knowformer.answering.answerer import CHUNK, Answerer
from knowformer.answering.ranking import Options
from knowformer.calibration.calibrator import Calibrator
from knowformer.data.labels import Labels
from knowformer.graph.knowledge_graph import KnowledgeGraph


def test_answers_carry_names_labels_and_known_facts(answerer: Answerer):
    asked = answerer.question(relation="is mother of", tail="bob")
    (answers,) = answerer.answer([asked], Options(k=9))
    assert (answers.head, answers.relation, answers.tail) == (None, "mother_of", "bob")
    assert answers.shown_as == "(?, is mother of, bob)"
    assert {a.name for a in answers.answers} == set(answerer.graph.entities)
    assert [a.rank for a in answers.answers] == [1, 2, 3, 4, 5, 6]
    assert {a.name: a.label for a in answers.answers if a.label} == {"ann": "Ann Archer"}
    assert [a.name for a in answers.answers if a.known] == ["ann"]


def test_a_relation_is_answered_by_relation_names(answerer: Answerer):
    (answers,) = answerer.answer([answerer.question(head="ann", tail="dan")], Options(k=9))
    assert {a.name for a in answers.answers} == set(answerer.graph.relations)
    assert {a.name: a.label for a in answers.answers if a.label} == {"mother_of": "is mother of"}
    assert [a.name for a in answers.answers if a.known] == ["married_to"]
    assert answers.num_candidates == len(answerer.graph.relations)


def test_a_stream_is_answered_while_it_is_read(answerer: Answerer):
    asked = answerer.question(head="ann", relation="mother_of")
    read: list[int] = []

    def questions():
        for number in range(2 * CHUNK):
            read.append(number)
            yield asked

    stream = answerer.stream(questions(), Options(k=1))
    assert next(stream).answers[0].rank == 1
    assert len(read) == CHUNK
    assert sum(1 for _ in stream) == 2 * CHUNK - 1


def test_a_new_calibrator_takes_effect_at_once(
    family: KnowledgeGraph, build_answerer: Callable[..., Answerer]
):
    answerer = build_answerer(family)
    asked = answerer.question(head="ann", relation="mother_of")
    (softmax,) = answerer.answer([asked], Options(k=9))
    assert sum(a.probability for a in softmax.answers) == pytest.approx(1.0)
    answerer.use(Calibrator(None, "sigmoid", family.relations))
    (sigmoid,) = answerer.answer([asked], Options(k=9))
    expected = torch.tensor([a.score for a in softmax.answers]).sigmoid().tolist()
    assert [a.probability for a in sigmoid.answers] == pytest.approx(expected)


def test_several_threads_get_the_answers_that_one_would(
    family: KnowledgeGraph, build_answerer: Callable[..., Answerer]
):
    one, many = build_answerer(family), build_answerer(family)
    pairs = [("ann", "mother_of", None), (None, "father_of", "bob"), ("ann", None, "dan")]
    names = ("head", "relation", "tail")
    asked = [one.question(**dict(zip(names, pair, strict=True))) for pair in pairs]
    expected = one.answer(asked, Options(k=4))

    def ask(number: int) -> bool:
        if number % 10 == 0:  # another calibrator, here an equal one, starts another cache
            many.use(Calibrator(None, "softmax", family.relations))
        return many.answer(asked[number % 3 :], Options(k=4)) == expected[number % 3 :]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(60)))


def test_a_fingerprint_tells_what_answers_depend_on(
    family: KnowledgeGraph, build_answerer: Callable[..., Answerer]
):
    usual = build_answerer(family)
    assert usual.fingerprint() == build_answerer(family).fingerprint()
    fewer = KnowledgeGraph(family.entities, family.relations, family.facts[1:])
    other_link = build_answerer(family)
    other_link.use(Calibrator(None, "sigmoid", family.relations))
    others = [
        build_answerer(family, seed=1),
        build_answerer(fewer),
        build_answerer(family, labels=Labels({"ann": "Ann"}, {})),
        other_link,
    ]
    assert len({usual.fingerprint(), *(other.fingerprint() for other in others)}) == 5
