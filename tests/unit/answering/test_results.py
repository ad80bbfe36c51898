"""Results as people and programs see them."""

from dataclasses import replace

from knowformer.answering.results import Answer, Answers, AnswerStream, MissingFact, MissingFacts
from knowformer.calibration.calibration import ProbabilityBasis

BEST = Answer("x", 1, 2.0, 0.99999, known=True)
ANSWERS = Answers("h", "r", None, "tail", [BEST], num_candidates=1234, num_known=1)


def test_an_answer_makes_the_fact_that_was_asked_for():
    assert list(ANSWERS.facts()) == [("h", "r", "x", BEST)]
    asked = Answers(None, "r", "t", "head", [BEST], num_candidates=2, num_known=0)
    assert list(asked.facts()) == [("x", "r", "t", BEST)]


def test_a_table_says_what_its_probabilities_are():
    text = str(ANSWERS)
    assert "(h, r, ?)" in text
    assert ">0.999" in text
    assert "1,234 candidates, 1 of them known facts" in text
    assert "not calibrated" in text
    assert "label" not in text


def test_a_table_says_how_many_facts_stand_behind_its_probabilities():
    for facts, words in ((0, "none of them"), (9, "too little to tell"), (10, "10 of them")):
        basis = ProbabilityBasis(questions=12, facts=facts)
        behind = replace(ANSWERS, probability_kind="calibrated", probability_basis=basis)
        assert words in " ".join(str(behind).split())
    assert "too little" not in str(behind)


def test_labels_take_the_place_of_ids_where_people_read():
    fact = MissingFact("Q1", "r", "Q2", 1, 0.5, 0.25, head_label="Ann")
    missing = MissingFacts("r", [fact], 1, 5, "calibrated")
    text = str(missing)
    assert "Ann" in text
    assert "Q1" not in text
    assert "Q2" in text
    assert [c.name for c in missing.table().columns][:3] == ["rank", "head", "head label"]


def test_a_stream_may_be_read_again():
    stream = AnswerStream(lambda: iter([ANSWERS]))
    assert list(stream) == list(stream) == [ANSWERS]
