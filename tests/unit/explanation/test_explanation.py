import pytest

from knowformer.data.labels import Labels
from knowformer.explanation.explanation import (
    AttendedEntity,
    EvidencePath,
    Explanation,
    Faithfulness,
    HeadAttention,
    ScoreDrop,
    ScoreMargin,
    Step,
    mean_of,
    odds_left,
    verdict_on,
)

DROP = ScoreDrop(score=1.0, log_odds=1.5, probability=0.1, rank=2.0)


def explanation(**changes: object) -> Explanation:
    """Why ``t`` is the answer to (h, likes, ?): one path over ``m``, one prototype ``p``."""
    steps = [
        Step(start="h", relation="part_of", end="m", backwards=True),
        Step(start="m", relation="likes", end="t", backwards=False),
    ]
    prototype = AttendedEntity(entity="p", influence=0.1, attention=1.2)
    given = Explanation(
        head="h",
        relation="likes",
        tail="t",
        asks_for="tail",
        standing=ScoreMargin(score=1.0, log_odds=0.5, probability=0.6, rank=1.0),
        num_rivals=9,
        fact_hidden=False,
        paths=[EvidencePath(steps=steps, weight=2.0, loss=DROP)],
        no_paths=None,
        prototypes=[prototype],
        attended=[],
        heads=[HeadAttention(layer=1, head=1, entities=[prototype])],
        no_prototypes=None,
        without_attention=None,
        faithfulness=[
            Faithfulness(evidence="prototypes", size=1, loss=DROP, random=[], verdict="contribute")
        ],
        seconds=0.1,
    )
    return given.model_copy(update=changes)


def test_a_drop_is_positive_where_the_answer_does_worse() -> None:
    before = ScoreMargin(score=2.0, log_odds=1.0, probability=0.7, rank=1.0)
    after = ScoreMargin(score=0.5, log_odds=-1.0, probability=0.3, rank=4.0)
    drop = ScoreDrop.between(before, after)
    assert (drop.score, drop.log_odds, drop.rank) == (1.5, 2.0, 3.0)
    assert drop.probability == pytest.approx(0.4)


def test_the_mean_of_drops_is_zero_where_there_are_none() -> None:
    other = DROP.model_copy(update={"log_odds": 0.5})
    assert mean_of([DROP, other], "log_odds") == 1.0
    assert mean_of([], "log_odds") == 0.0


@pytest.mark.parametrize(
    ("asks_for", "question", "start", "answer"),
    [("tail", "(h, likes, ?)", "h", "t"), ("head", "(?, likes, t)", "t", "h")],
)
def test_a_question_starts_from_what_is_given_and_ends_at_the_answer(
    asks_for: str, question: str, start: str, answer: str
) -> None:
    asked = explanation(asks_for=asks_for)
    assert (asked.question(), asked.asked_from, asked.answer) == (question, start, answer)


def test_a_path_is_one_line_with_arrows_along_its_facts() -> None:
    given = explanation()
    assert given.path_text(given.paths[0]) == "h <-[part_of]- m -[likes]-> t"


def test_labels_of_what_is_mentioned_are_kept_and_no_others() -> None:
    labels = Labels(
        {"m": "Middle", "p": "Prototype", "nobody": "Nobody"}, {"likes": "is fond of", "has": "has"}
    )
    named = explanation().with_labels(labels)
    assert named.entity_labels == {"m": "Middle", "p": "Prototype"}
    assert named.relation_labels == {"likes": "is fond of"}
    assert named.path_text(named.paths[0]) == "h <-[part_of]- Middle -[is fond of]-> t"


def test_an_explanation_in_words_names_its_evidence_and_how_far_to_trust_it() -> None:
    assert str(explanation()).splitlines() == [
        "(h, likes, ?) t: rank 1 of 10, log-odds +0.50",
        "  path +2.000  h <-[part_of]- m -[likes]-> t",
        "  prototype +0.1000  p",
        "Its prototypes contribute: without their 1 entities its odds are 22 % of what they were, "
        "without others at random 100.0 %",
    ]
    without = explanation(paths=[], no_paths="No path of facts leads from h to t.")
    assert str(without).splitlines()[1] == without.no_paths


def test_a_table_has_a_row_for_each_piece_of_evidence() -> None:
    table = explanation().table()
    assert [row[:4] for row in table.rows] == [
        ["path", "h <-[part_of]- m -[likes]-> t", 2.0, 1.5],
        ["prototype", "p", 0.1, None],
    ]


def test_keys_of_the_json_stay_as_they_are() -> None:
    printed = explanation().model_dump(mode="json")
    assert list(printed) == [
        *("head", "relation", "tail", "asks_for", "standing", "num_rivals", "fact_hidden"),
        *("paths", "no_paths", "prototypes", "attended", "heads", "no_prototypes"),
        *("without_attention", "faithfulness", "seconds", "entity_labels", "relation_labels"),
    ]
    assert list(printed["standing"]) == ["score", "log_odds", "probability", "rank"]
    assert list(printed["paths"][0]["loss"]) == ["score", "log_odds", "probability", "rank"]
    assert list(printed["faithfulness"][0]) == ["evidence", "size", "loss", "random", "verdict"]


@pytest.mark.parametrize(
    ("lost", "at_random", "beats_random", "verdict"),
    [
        (3.0, 0.1, True, "carry the answer"),
        (3.0, 2.5, True, "contribute"),  # others cost nearly as much
        (0.3, -0.1, True, "contribute"),
        (0.004, -0.001, True, "hardly matter"),
        (-0.5, -3.0, True, "hardly matter"),  # the answer does better without it
        (3.0, 0.1, False, "are no better than random"),
    ],
)
def test_a_verdict_tells_what_carries_an_answer_from_what_hardly_matters(
    lost: float, at_random: float, beats_random: bool, verdict: str
) -> None:
    assert verdict_on(lost, at_random, beats_random=beats_random) == verdict


@pytest.mark.parametrize(
    ("lost", "left"),
    [(0.0, "100.0 %"), (0.004, "99.6 %"), (1.0, "37 %"), (-1.0, "272 %"), (6.0, "0.2 %")],
)
def test_odds_left_are_exact_where_that_matters(lost: float, left: str) -> None:
    assert odds_left(lost) == left
    assert odds_left(-1e9).endswith("%")
