"""The queue before the model."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from knowformer import Reasoner
from knowformer.answering.questions import Question
from knowformer.answering.results import Answers
from knowformer.live.snapshots import Snapshot
from knowformer.server.metrics import Metrics
from knowformer.server.problems import Problem
from knowformer.server.scoring_queue import LongWork, ScoringQueue


@pytest.fixture
def snapshot(reasoner: Reasoner) -> Snapshot:
    return Snapshot(0, reasoner, reasoner.graph)


def value(metrics: Metrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(f"knowformer_{name}")


def test_questions_that_come_together_are_scored_together_and_answered_as_if_alone(
    snapshot: Snapshot,
) -> None:
    reasoner, metrics = snapshot.reasoner, Metrics()
    asked = [reasoner.question(head=f"place{n:02d}", relation="next") for n in range(12)]
    asked += [reasoner.question(tail=f"place{n:02d}", relation="skip") for n in range(4)]
    asked += [reasoner.question(head="place01", tail="place02")]

    async def ask() -> list[Answers]:
        queue = ScoringQueue(metrics, limit=99, time_limit=30)
        queue.start()
        try:
            return await asyncio.gather(
                *(queue.answer(snapshot, question, {"k": 3, "typical": True}) for question in asked)
            )
        finally:
            await queue.stop()

    answers = asyncio.run(ask())
    assert value(metrics, "scoring_batch_questions_count") == 2  # a relation is asked for alone
    names = reasoner.graph.entities.names
    for question, together in zip(asked, answers, strict=True):
        alone = reasoner.answer(
            head=None if question.head is None else names[question.head],
            relation=together.relation,
            tail=None if question.tail is None else names[question.tail],
            k=3,
            typical=True,
        )
        assert together == alone


def test_other_options_and_snapshots_are_not_mixed(snapshot: Snapshot) -> None:
    question = Question(0, 0, None)
    later = Snapshot(1, snapshot.reasoner.with_facts([("place00", "next", "x")]), snapshot.base)
    metrics = Metrics()

    async def ask() -> list[Answers]:
        queue = ScoringQueue(metrics, limit=9, time_limit=30)
        queue.start()
        try:
            return await asyncio.gather(
                queue.answer(snapshot, question, {"k": 1}),
                queue.answer(snapshot, question, {"k": 2}),
                queue.answer(later, question, {"k": 1}),
            )
        finally:
            await queue.stop()

    one, two, grown = asyncio.run(ask())
    assert (len(one.answers), len(two.answers)) == (1, 2)
    assert (one.num_candidates, grown.num_candidates) == (16, 17)
    assert value(metrics, "scoring_batch_questions_count") == 3


def refused(coroutine: Coroutine[Any, Any, Any]) -> Problem:
    with pytest.raises(Problem) as refusal:
        asyncio.run(coroutine)
    return refusal.value


def test_beyond_its_limit_the_queue_refuses(snapshot: Snapshot) -> None:
    async def ask() -> None:
        queue = ScoringQueue(Metrics(), limit=1, time_limit=30)
        first = asyncio.create_task(queue.answer(snapshot, Question(0, 0, None), {}))
        await asyncio.sleep(0)
        try:
            await queue.answer(snapshot, Question(1, 0, None), {})
        finally:
            first.cancel()

    problem = refused(ask())
    assert problem.status_code == 429
    assert problem.headers == {"Retry-After": "1"}


def test_what_takes_too_long_is_given_up(snapshot: Snapshot) -> None:
    async def ask() -> None:
        await ScoringQueue(Metrics(), limit=9, time_limit=0.01).answer(
            snapshot, Question(0, 0, None), {}
        )

    assert refused(ask()).status_code == 504


def test_whoever_leaves_is_not_scored(snapshot: Snapshot) -> None:
    metrics = Metrics()

    async def ask() -> Answers:
        queue = ScoringQueue(metrics, limit=9, time_limit=30)
        asked = [queue.answer(snapshot, Question(n, 0, None), {}) for n in range(3)]
        tasks = [asyncio.create_task(each) for each in asked]
        await asyncio.sleep(0)
        for task in tasks[:2]:
            task.cancel()
        await asyncio.sleep(0)
        queue.start()
        try:
            return await tasks[2]
        finally:
            await queue.stop()

    assert asyncio.run(ask()).head == "place02"
    assert value(metrics, "scoring_batch_questions_sum") == 1


def test_a_relation_question_is_stopped_on_the_way(snapshot: Snapshot) -> None:
    """One that would take 64 passes a sample, for ever, were it not."""

    async def ask() -> float:
        queue = ScoringQueue(Metrics(), limit=9, time_limit=0.05)
        queue.start()
        how: Any = {"samples": 100_000}
        with pytest.raises(Problem):
            await queue.answer(snapshot, Question(0, None, 1), how)
        await queue.stop()  # waits for what is being scored
        return 0

    asyncio.run(asyncio.wait_for(ask(), 20))


def test_an_error_reaches_whoever_asked_and_the_queue_lives_on(snapshot: Snapshot) -> None:
    async def ask() -> Answers:
        queue = ScoringQueue(Metrics(), limit=9, time_limit=30)
        queue.start()
        try:
            with pytest.raises(ValueError, match="type"):
                await queue.answer(snapshot, Question(0, 0, None), {"of_type": "nothing"})
            return await queue.answer(snapshot, Question(0, 0, None), {})
        finally:
            await queue.stop()

    assert asyncio.run(ask()).head == "place00"


def test_long_work_has_a_limit_and_a_time() -> None:
    async def work() -> list[int]:
        long_work = LongWork(limit=1, time_limit=30)
        first = asyncio.create_task(long_work.run(lambda: 1))
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refusal:
            await long_work.run(lambda: 2)
        assert refusal.value.status_code == 429
        done = [await first]
        await asyncio.sleep(0.01)
        done.append(await long_work.run(lambda: 3))
        long_work.stop()
        return done

    assert asyncio.run(work()) == [1, 3]
