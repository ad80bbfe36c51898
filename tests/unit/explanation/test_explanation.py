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
    odds_in_words,
    signed,
    verdict_on,
)

DROP = ScoreDrop(
    score=1.0, log_odds=1.5, truth_log_odds=1.5, probability=0.1, rank=2.0, rank_among_all=3.0
)


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
        standing=ScoreMargin(
            score=1.0,
            log_odds=0.5,
            truth_log_odds=0.5,
            probability=0.6,
            rank=1.0,
            rank_among_all=2.0,
        ),
        num_rivals=9,
        num_candidates=12,
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
    before = ScoreMargin(
        score=2.0, log_odds=1.0, truth_log_odds=1.0, probability=0.7, rank=1.0, rank_among_all=1.0
    )
    after = ScoreMargin(
        score=0.5, log_odds=-1.0, truth_log_odds=-1.0, probability=0.3, rank=4.0, rank_among_all=6.0
    )
    drop = ScoreDrop.between(before, after)
    assert (drop.score, drop.log_odds, drop.rank, drop.rank_among_all) == (1.5, 2.0, 3.0, 5.0)
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
        "(h, likes, ?) t: rank 2 of 12, probability 0.600; rank 1 once other known facts are left "
        "out",
        "  lost without: 0.100  h <-[part_of]- m -[likes]-> t",
        "  prototype: p",
        "Its prototypes contribute: without their 1 entity its odds fall 4.5-fold (probability "
        "lost: 0.100), without others at random its odds hardly change",
    ]
    without = explanation(paths=[], no_paths="No path of facts leads from h to t.")
    assert str(without).splitlines()[1] == without.no_paths


def test_a_table_has_a_row_for_each_piece_of_evidence() -> None:
    table = explanation().table()
    assert [row[:5] for row in table.rows] == [
        ["path", "h <-[part_of]- m -[likes]-> t", 0.1, 1.5, 2.0],
        ["prototype", "p", None, None, 0.1],
    ]
    assert [column.name for column in table.columns[2:4]] == ["lost", "log-odds lost"]


def test_prototypes_that_hardly_matter_are_not_shown() -> None:
    (check,) = explanation().faithfulness
    without = explanation(faithfulness=[check.model_copy(update={"verdict": "hardly matter"})])
    assert not without.prototypes_matter
    assert len(without.table().rows) == 1
    assert "prototype: p" not in str(without)
    assert "Its prototypes hardly matter" in str(without)


def test_keys_of_the_json_stay_as_they_are() -> None:
    printed = explanation().model_dump(mode="json")
    assert list(printed) == [
        *("head", "relation", "tail", "asks_for", "standing", "num_rivals"),
        *("num_candidates", "probability_kind", "fact_hidden"),
        *("paths", "no_paths", "prototypes", "attended", "heads", "no_prototypes"),
        *("without_attention", "faithfulness", "seconds", "entity_labels", "relation_labels"),
    ]
    measures = ["score", "log_odds", "probability", "truth_log_odds", "rank", "rank_among_all"]
    assert list(printed["standing"]) == list(printed["paths"][0]["loss"]) == measures
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
    ("lost", "words"),
    [
        (0.004, "odds hardly change"),
        (0.5, "odds fall by 39 %"),
        (-0.5, "odds rise by 65 %"),
        (1.0, "odds fall 2.7-fold"),
        (-3.0, "odds rise 20-fold"),
        (1e9, "odds fall >1,000-fold"),
    ],
)
def test_what_is_lost_is_said_in_words_with_its_sign(lost: float, words: str) -> None:
    assert odds_in_words(lost) == words


def test_a_lost_probability_is_positive_and_never_rounded_to_nothing() -> None:
    assert [signed(p) for p in (0.25, -0.25, 0.0, -0.0)] == ["0.250", "-0.250", "0.000", "0.000"]
    assert [signed(p) for p in (1e-6, -1e-6)] == ["<0.001", ">-0.001"]
