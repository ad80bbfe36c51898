"""The scoring queue: questions that arrive together are scored together, in a thread of their own.

While the model is busy, questions gather; those of one snapshot and with the same options are then
answered in one call, which shares what questions of one relation have in common. A question's
answers do not depend on what it is scored with. A question that asks for a relation takes many
passes of the model and goes alone. Questions whose client has left, or whose time is up, are
dropped.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from knowformer.answering.candidates import HowToAnswer
from knowformer.answering.questions import Question
from knowformer.answering.results import Answers
from knowformer.live.snapshots import Snapshot
from knowformer.server.metrics import Metrics
from knowformer.server.problems import Problem

Result = TypeVar("Result")

WINDOW = 0.002  # seconds that an idle server waits for questions that come with the first
MAX_PASSES = 64  # of the model, in one call: it cannot be stopped on the way


class DroppedError(Exception):
    """Nobody waits for the result any more."""


@dataclass(eq=False)
class Waiting:
    """A question that waits for its answers."""

    snapshot: Snapshot
    question: Question
    how: HowToAnswer
    answers: asyncio.Future[Answers] = field(default_factory=asyncio.Future)

    def goes_with(self, other: "Waiting") -> bool:
        """Whether both can be answered in one call."""
        return (
            self.snapshot.version == other.snapshot.version
            and self.question.relation is not None
            and other.question.relation is not None
            and self.how == other.how
        )


class ScoringQueue:
    """A bounded queue before the model."""

    def __init__(self, metrics: Metrics, *, limit: int, time_limit: float) -> None:
        """Makes a queue; ``start`` sets it going.

        Args:
            metrics: counts questions and batches.
            limit: questions that wait; the next one is refused.
            time_limit: seconds for a question, waiting included.
        """
        self._metrics = metrics
        self._limit = limit
        self._time_limit = time_limit
        self._waiting: deque[Waiting] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "scoring")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to answer."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends; what is being scored is finished, and nothing else is."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def answer(self, snapshot: Snapshot, question: Question, how: HowToAnswer) -> Answers:
        """Answers a question.

        Raises:
            Problem: too many questions wait, or the time is up.
            UserError: the options do not fit the graph.
        """
        if len(self._waiting) >= self._limit:
            self._metrics.refused.inc()
            raise too_many()
        waiting = Waiting(snapshot, question, how)
        self._waiting.append(waiting)
        self._metrics.waiting.set(len(self._waiting))
        self._arrived.set()
        return await within(self._time_limit, waiting.answers)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            await asyncio.sleep(WINDOW)
            while batch := self._take():
                self._metrics.batches.observe(len(batch))
                try:
                    results = await loop.run_in_executor(self._thread, _score, batch)
                except Exception as error:  # noqa: BLE001 - raised again where it was asked
                    for waiting in batch:
                        if not waiting.answers.done():
                            waiting.answers.set_exception(error)
                    continue
                for waiting, answers in zip(batch, results, strict=True):
                    if not waiting.answers.done():
                        waiting.answers.set_result(answers)
            self._arrived.clear()

    def _take(self) -> list[Waiting]:
        """Takes the question that has waited longest, and those that can go with it."""
        left = [each for each in self._waiting if not each.answers.done()]
        batch = left[:1]
        if batch:
            most = max(1, MAX_PASSES // batch[0].how.get("samples", 1))
            others = (each for each in left[1:] if each.goes_with(batch[0]))
            batch += [each for _, each in zip(range(most - 1), others, strict=False)]
        taken = set(map(id, batch))
        self._waiting = deque(each for each in left if id(each) not in taken)
        self._metrics.waiting.set(len(self._waiting))
        return batch


def _score(batch: list[Waiting]) -> list[Answers]:
    first = batch[0]
    reasoner = first.snapshot.reasoner
    if first.question.relation is not None:
        questions = [waiting.question for waiting in batch]
        return list(reasoner.answer_many(questions, **first.how))

    def stop_if_dropped(_done: int, _total: int) -> None:
        if first.answers.done():
            raise DroppedError

    names = reasoner.graph.entities.names
    head, tail = first.question.head, first.question.tail
    assert head is not None
    assert tail is not None
    asked = {"head": names[head], "tail": names[tail]}
    return [reasoner.answer(**asked, progress=stop_if_dropped, **first.how)]


class LongWork:
    """Work of seconds, such as an explanation: one at a time, beside the scoring."""

    def __init__(self, *, limit: int, time_limit: float) -> None:
        self._limit = limit
        self._time_limit = time_limit
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "long-work")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Does the work in a thread.

        Raises:
            Problem: too much work waits, or the time is up.
        """
        if self._waiting >= self._limit:
            raise too_many()
        self._waiting += 1
        done = asyncio.wrap_future(self._thread.submit(work))
        done.add_done_callback(self._finished)
        return await within(self._time_limit, done)

    def _finished(self, _: Any) -> None:
        self._waiting -= 1

    def stop(self) -> None:
        """Ends; what is under way is finished."""
        self._thread.shutdown(wait=True, cancel_futures=True)


async def within(seconds: float, result: asyncio.Future[Result]) -> Result:
    """Waits for a result, not for ever; what nobody waits for is cancelled."""
    try:
        async with asyncio.timeout(seconds):
            return await result
    except TimeoutError:
        raise Problem(
            HTTPStatus.GATEWAY_TIMEOUT,
            f"Expected an answer within {seconds:g} seconds, found none so far. Ask for less, or "
            "ask with a job.",
        ) from None


def too_many() -> Problem:
    """Returns the refusal of a request that would have to wait too long."""
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        "Expected fewer requests at a time; too many wait already. Ask again in a second.",
        headers={"Retry-After": "1"},
    )
