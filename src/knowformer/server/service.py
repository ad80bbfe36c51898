"""Service: a run on a graph that changes, as the routes use it."""

from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np

from knowformer.answering.candidates import HowToAnswer
from knowformer.answering.questions import Question
from knowformer.answering.responses import AnswersResponse
from knowformer.answering.results import Answers
from knowformer.audit.audit import Audit, audit
from knowformer.errors import VocabularyError
from knowformer.graph.fact_index import BY_QUERY, FactIndex
from knowformer.graph.knowledge_graph import number_facts
from knowformer.live.snapshots import LiveGraph, Snapshot
from knowformer.server.jobs import Jobs
from knowformer.server.metrics import Metrics
from knowformer.server.names import Names
from knowformer.server.problems import Problem
from knowformer.server.schemas.fields import NamedFact
from knowformer.server.schemas.questions import AnswerStatus
from knowformer.server.scoring_queue import LongWork, ScoringQueue
from knowformer.server.settings import Settings

SUGGESTED = 3


class Service:
    """All that routes share: the graph, its names, the queue before the model."""

    def __init__(
        self,
        live: LiveGraph,
        settings: Settings,
        *,
        jobs: Path,
        graph_name: str | None = None,
    ) -> None:
        """Binds what is served.

        Args:
            live: the graph and its store.
            settings: limits and callers.
            jobs: the folder of jobs.
            graph_name: where the graph is from; None: it is the run's own, with held-out facts.
        """
        self.live = live
        self.settings = settings
        self.metrics = Metrics()
        limits = {"time_limit": settings.time_limit}
        self.queue = ScoringQueue(self.metrics, limit=settings.max_waiting, **limits)
        self.long_work = LongWork(limit=settings.max_long, **limits)
        self.jobs = Jobs(jobs, self.snapshot)
        self.names = Names(live.snapshot())
        self.is_ready = False
        self.own_graph = graph_name is None
        self.graph_name = graph_name or live.snapshot().reasoner.dataset.name

    def snapshot(self) -> Snapshot:
        """Returns the newest snapshot; a request asks once, and keeps to it."""
        newest = self.live.snapshot()
        self.metrics.snapshot.set(newest.version)
        return newest

    def warm_up(self) -> None:
        """Asks a question, so that the first of a user's finds all compiled and indexed."""
        snapshot = self.snapshot()
        self.names.entities(snapshot, "a name", 1)
        self.names.relations("a name", 1)
        first = snapshot.graph.facts[:1].tolist()
        if first:
            question = Question(first[0][0], first[0][1], None)
            list(snapshot.reasoner.answer_many([question]))
        self.is_ready = True

    def question(self, snapshot: Snapshot, parts: dict[str, str | None]) -> Question:
        """Resolves names to ids.

        Raises:
            Problem: a name is unknown; it has what may have been meant.
            ConfigError: not exactly two were given.
        """
        try:
            return snapshot.reasoner.question(**parts)
        except VocabularyError as error:
            raise self.unknown(snapshot, parts, error) from None

    def unknown(
        self, snapshot: Snapshot, parts: dict[str, str | None], error: VocabularyError
    ) -> Problem:
        """Returns the refusal of a name, with the field that has it and names to choose from."""
        graph, labels = snapshot.graph, snapshot.reasoner.labels
        for field, name in parts.items():
            is_relation = field == "relation"
            has = labels.has_relation if is_relation else labels.has_entity
            if name is None or has(name, graph.relations if is_relation else graph.entities):
                continue
            if is_relation:
                found = self.names.relations(name, SUGGESTED)
            else:
                found = self.names.entities(snapshot, name, SUGGESTED)
            return Problem(
                HTTPStatus.NOT_FOUND,
                str(error),
                suggestions=[match.name for match in found],
                field=field,
            )
        return Problem(HTTPStatus.NOT_FOUND, str(error))

    def unknown_relation(self, relation: str, error: VocabularyError) -> Problem:
        """Returns the refusal of a fact; its entities may be new, its relation may not."""
        return self.unknown(self.live.snapshot(), {"relation": relation}, error)

    def answer_content(self, snapshot: Snapshot, answers: Answers) -> dict[str, Any]:
        """Returns what ``answer --json`` prints, with the status of each answer."""
        content = AnswersResponse.of(answers).content()
        if answers.asks_for != "relation":
            statuses = self._statuses(snapshot, answers)
            for answer, status in zip(content["answers"], statuses, strict=True):
                answer["status"] = status
        return content

    def _statuses(self, snapshot: Snapshot, answers: Answers) -> list[AnswerStatus]:
        graph, held_out = snapshot.graph, self._held_out
        facts = [fact[:3] for fact in answers.facts()]
        rows = number_facts(facts, graph.entities, graph.relations).numpy()
        inside = (rows[:, [0, 2]] < len(self.live.snapshot().base.entities)).all(1)
        is_held_out = np.zeros(len(rows), dtype=bool)
        if held_out is not None:
            is_held_out[inside] = held_out.has_fact(rows[inside])
        return [
            "held_out" if held else "known" if answer.known else "new"
            for answer, held in zip(answers.answers, is_held_out.tolist(), strict=True)
        ]

    @cached_property
    def _held_out(self) -> FactIndex | None:
        """The facts that training did not see, if the graph is the run's own."""
        if not self.own_graph:
            return None
        base, dataset = self.snapshot().base, self.snapshot().reasoner.dataset
        splits = [dataset.test] if dataset.is_inductive else [dataset.valid, dataset.test]
        facts = np.concatenate([split.facts.numpy() for split in splits])
        sizes = {"num_entities": len(base.entities), "num_relations": len(base.relations)}
        return FactIndex.of(facts, BY_QUERY, **sizes)

    @cached_property
    def example(self) -> NamedFact | None:
        """A fact to begin with: a test fact of the run, else one of the graph's."""
        snapshot = self.snapshot()
        rows = snapshot.reasoner.dataset.test.facts if self.own_graph else snapshot.base.facts
        if len(rows) == 0:
            return None
        head, relation, tail = rows[0].tolist()
        entity, name = snapshot.base.entities.name, snapshot.base.relations.name
        return NamedFact(head=entity(head), relation=name(relation), tail=entity(tail))

    @cached_property
    def audit(self) -> Audit:
        """The audit of the run's data set, or of the graph as it was loaded."""
        snapshot = self.snapshot()
        return audit(snapshot.reasoner.dataset if self.own_graph else snapshot.base)

    def how(self, **options: Any) -> HowToAnswer:
        """Returns options without those that were not given."""
        given = {name: value for name, value in options.items() if value is not None}
        return HowToAnswer(**given)
