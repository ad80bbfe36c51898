"""Responses: the keys of JSON and their order, which programs rely on."""

from knowformer.answering.responses import AnswersResponse, MissingFactsResponse
from knowformer.answering.results import Answer, Answers, MissingFact, MissingFacts, NoiseSpread
from knowformer.calibration.calibration import ProbabilityBasis

BASIS = ProbabilityBasis(questions=7, facts=4)
SPREAD = NoiseSpread(2, 0.5, 0.1, 0.3, 0.2, 1.0)


def answers(asks_for: str, *candidates: Answer) -> Answers:
    names = {"head": "h", "relation": "r", "tail": "t"} | {asks_for: None}
    return Answers(
        **names, asks_for=asks_for, answers=list(candidates), num_candidates=9, num_known=1
    )


def test_what_is_asked_is_null_and_what_an_answer_lacks_is_left_out():
    content = AnswersResponse.of(answers("tail", Answer("x", 1, 0.5, 0.25, True))).content()
    assert list(content) == ["query", "answers"]
    assert list(content["query"].items()) == [
        *(("head", "h"), ("relation", "r"), ("tail", None), ("asks_for", "tail")),
        *(("candidates", 9), ("known", 1), ("probability_kind", "model")),
    ]
    (answer,) = content["answers"]
    assert list(answer.items()) == [
        *(("entity", "x"), ("rank", 1), ("score", 0.5), ("probability", 0.25), ("known", True)),
    ]


def test_a_relation_is_called_one_and_labels_and_spread_come_last():
    labelled = Answer("r2", 1, 0.5, 0.25, False, label="is", spread=SPREAD)
    (answer,) = AnswersResponse.of(answers("relation", labelled)).content()["answers"]
    assert list(answer) == ["relation", "rank", "score", "probability", "known", "label", "spread"]
    assert list(answer["spread"].items()) == [
        *(("samples", 2), ("score_mean", 0.5), ("score_deviation", 0.1)),
        *(("probability_mean", 0.3), ("probability_deviation", 0.2), ("top_k_share", 1.0)),
    ]


def test_missing_facts_say_what_was_asked():
    fact = MissingFact("h", "r", "t", 1, 0.5, 0.25, tail_label="Tea")
    content = MissingFactsResponse.of(
        MissingFacts("r", [fact], 3, 20, "calibrated", BASIS)
    ).content()
    assert content == {
        "query": {
            "all_missing": "r",
            "questions": 3,
            "candidates": 20,
            "probability_kind": "calibrated",
            "probability_basis": {"questions": 7, "facts": 4},
        },
        "facts": [
            {
                "head": "h",
                "relation": "r",
                "tail": "t",
                "rank": 1,
                "score": 0.5,
                "probability": 0.25,
                "tail_label": "Tea",
            }
        ],
    }
