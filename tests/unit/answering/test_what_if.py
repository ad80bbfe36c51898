"""Answers before and after a change that nobody stores."""

from knowformer.answering.results import Answer, Answers
from knowformer.answering.what_if import Move, compare_answers


def ranked(*names: str) -> Answers:
    answers = [
        Answer(
            name,
            rank,
            score=-float(rank),
            probability=1 / (rank + 1),
            known=False,
            label=name.upper(),
        )
        for rank, name in enumerate(names, start=1)
    ]
    return Answers("h", "r", None, "tail", answers, len(names), 0)


def test_every_answer_before_or_after_is_followed() -> None:
    compared = compare_answers(ranked("a", "b", "c", "d"), ranked("c", "a", "new", "b"), k=2)
    assert [answer.name for answer in compared.before.answers] == ["a", "b"]
    assert [answer.name for answer in compared.after.answers] == ["c", "a"]
    assert compared.moves == [
        Move("c", 3, 1, 1 / 4, 1 / 2, "C"),
        Move("a", 1, 2, 1 / 2, 1 / 3, "A"),
        Move("b", 2, 4, 1 / 3, 1 / 5, "B"),
    ]
    assert compared.table().rows[2] == ["B", 2, 4, 1 / 3, 1 / 5]


def test_what_is_in_one_of_them_alone_has_no_rank_in_the_other() -> None:
    compared = compare_answers(ranked("a"), ranked("new"), k=5)
    assert compared.moves == [
        Move("new", None, 1, None, 1 / 2, "NEW"),
        Move("a", 1, None, 1 / 2, None, "A"),
    ]
