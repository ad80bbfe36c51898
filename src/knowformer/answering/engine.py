"""The engine: questions in ids to ranked answers, in batches of bounded memory.

Questions with the same given entity and relation share one pass of the model. A relation question
takes a pass per relation, whatever its tail: those with the same head share them all, and those
with other heads are asked side by side, relation by relation, which shares a part of each pass. A
question's answers do not depend on its batch.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.answering.questions import Question
from knowformer.answering.results import Answer, Answers, Spread
from knowformer.calibration.calibrator import Context, Judge, Verdict
from knowformer.calibration.sample import Floats, batch_rows
from knowformer.data.labels import Labels
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers
from knowformer.scoring.scorer import Scorer

CHUNK = 512  # questions that are grouped together
RELATION_ROWS = 32  # passes between two reports of progress: a relation question takes many
REMEMBERED = 200_000  # answers that are kept: about 100 MB

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """How questions are answered."""

    k: int = 10
    new_only: bool = False
    samples: int = 1
    """Draws of the identity noise; more than one adds a spread to each answer."""


@dataclass(frozen=True)
class Ranking:
    """The best candidates of a question, and how many there were."""

    answers: list[Answer]
    num_candidates: int
    num_known: int


@dataclass(frozen=True)
class ScoredBatch:
    """Scores of a batch of queries, and what they are judged against."""

    scores: Float[Tensor, "B V"]
    known: Bool[Tensor, "B V"]
    context: Context


class Engine:
    """A model on a graph, with what is known there."""

    def __init__(
        self,
        model: KnowFormer,
        graph: KnowledgeGraph,
        *,
        known: KnownAnswers,
        judge: Judge,
        labels: Labels,
        seed: int,
        threads: int = 0,
    ) -> None:
        """Binds a model to a graph.

        Args:
            model: the model.
            graph: its facts are what the model sees.
            known: answers that are marked as known; at least those of the graph's facts.
            judge: makes probabilities of scores.
            labels: readable names.
            seed: of the identity noise.
            threads: CPU threads; 0 takes all cores.
        """
        self.graph = graph
        self.judge = judge
        self.labels = labels
        self._known = known
        self._seen = KnownAnswers.of(graph)
        self._remembered: dict[tuple[Options, Question], Ranking] = {}

        @cache
        def scorer(sample: int) -> Scorer:
            return Scorer(model, graph, seed=seed, sample=sample, threads=threads)

        self._scorer = scorer

    @property
    def batch_rows(self) -> int:
        """Returns how many queries' scores are held at once."""
        return batch_rows(len(self.graph.entities))

    def use(self, judge: Judge) -> None:
        """Judges scores otherwise from now on."""
        self.judge = judge
        self._remembered.clear()

    def score(
        self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"], *, sample: int = 0
    ) -> ScoredBatch:
        """Scores queries (head, relation, ?) against every entity."""
        scores = self._scorer(sample).score(heads, relations)
        seen = self._seen.mask(heads, relations)
        known = self._known.mask(heads, relations)
        return ScoredBatch(scores, known, self.judge.context(scores, seen, relations))

    def stream(self, questions: Iterable[Question], options: Options) -> Iterator[Answers]:
        """Answers questions in their order, a chunk at a time."""
        source = iter(questions)
        while chunk := list(islice(source, CHUNK)):
            yield from self.answer(chunk, options)

    def answer(
        self,
        questions: Sequence[Question],
        options: Options,
        *,
        progress: Progress | None = None,
    ) -> list[Answers]:
        """Answers some questions at once.

        Args:
            questions: the questions.
            options: how to answer.
            progress: called with passes of the model done and in all.
        """
        distinct = dict.fromkeys(questions)
        found = {q: self._remembered.get((options, q)) for q in distinct}
        rankings = {q: ranking for q, ranking in found.items() if ranking is not None}
        todo = [q for q in distinct if q not in rankings]
        entity_questions = [q for q in todo if q.relation is not None]
        relation_questions = [q for q in todo if q.relation is None]
        num_heads = len({q.head for q in relation_questions})
        total = options.samples * (len(entity_questions) + num_heads * len(self.graph.relations))
        done = _Counter(total, progress)
        # Equal relations side by side: they share their relation vectors.
        pairs = sorted((*self._query(q), n) for n, q in enumerate(entity_questions))
        for first in range(0, len(pairs), self.batch_rows):
            part = [entity_questions[n] for _, _, n in pairs[first : first + self.batch_rows]]
            rankings |= zip(part, self._rank_entities(part, options, done), strict=True)
        if relation_questions:
            ranked = self._rank_relations(relation_questions, options, done)
            rankings |= zip(relation_questions, ranked, strict=True)
        self._remember(options, {q: rankings[q] for q in todo})
        return [self._answers(question, rankings[question]) for question in questions]

    def _remember(self, options: Options, rankings: dict[Question, Ranking]) -> None:
        """Keeps rankings, so that a question that is repeated costs nothing."""
        if (len(self._remembered) + len(rankings)) * options.k > REMEMBERED:
            self._remembered.clear()
        if len(rankings) * options.k <= REMEMBERED:
            self._remembered |= {(options, q): ranking for q, ranking in rankings.items()}

    def _query(self, question: Question) -> tuple[int, int]:
        """Returns (relation, entity) as the model is asked; heads through the inverse relation."""
        assert question.relation is not None
        if question.head is not None:
            return question.relation, question.head
        assert question.tail is not None
        # Who has this tail? The same question read backwards.
        backwards = inverse_of(torch.tensor(question.relation), len(self.graph.relations))
        return int(backwards), question.tail

    def _rank_entities(
        self, questions: list[Question], options: Options, done: "_Counter"
    ) -> list[Ranking]:
        relations, heads = torch.tensor([self._query(q) for q in questions]).unbind(1)
        k = min(options.k, len(self.graph.entities))
        draws: list[Draw] = []
        chosen = known = torch.empty(0)
        for sample in range(options.samples):
            batch = self.score(heads, relations, sample=sample)
            hidden = batch.known if options.new_only else torch.zeros_like(batch.known)
            allowed = batch.scores.masked_fill(hidden, -torch.inf)
            best = allowed.sort(dim=1, descending=True, stable=True)
            if sample == 0:
                chosen, known = best.indices[:, :k], batch.known
            scores = allowed.gather(1, chosen)
            verdict = self.judge.judge(scores, batch.context)
            # Among the k best: at least as high as the last of them.
            in_top = scores >= best.values[:, k - 1 : k]
            draws.append(Draw(scores.double().numpy(), verdict.probability, in_top.numpy()))
            done.add(len(questions))
        return [
            Ranking(
                self._make_answers(
                    chosen[row].tolist(),
                    [draw.row(row) for draw in draws],
                    known[row],
                    names=self.graph.entities.names,
                    labels=self.labels.entities,
                ),
                num_candidates=len(self.graph.entities),
                num_known=int(known[row].sum()),
            )
            for row in range(len(questions))
        ]

    def _rank_relations(
        self, questions: list[Question], options: Options, done: "_Counter"
    ) -> list[Ranking]:
        """Ranks (head, r, tail) over every relation r that has a name."""
        k = min(options.k, len(self.graph.relations))
        draws: list[list[Draw]] = [[] for _ in questions]
        orders: list[list[int]] = []
        known = torch.empty(0)
        for sample in range(options.samples):
            scores, verdict, known = self._score_relations(questions, sample, done)
            for column in range(len(questions)):
                at = known[:, column] if options.new_only else torch.zeros_like(known[:, column])
                likely = verdict[:, column]
                order = [n for n in likely.order().tolist() if not at[n]]
                if sample == 0:
                    orders.append(order[:k])
                chosen, top = orders[column], set(order[:k])
                draws[column].append(
                    Draw(
                        scores[chosen, column],
                        likely.probability[chosen],
                        np.array([n in top for n in chosen], dtype=bool),
                    )
                )
        return [
            Ranking(
                self._make_answers(
                    orders[column],
                    draws[column],
                    known[:, column],
                    names=self.graph.relations.names,
                    labels=self.labels.relations,
                ),
                num_candidates=len(known),
                num_known=int(known[:, column].sum()),
            )
            for column in range(len(questions))
        ]

    def _score_relations(
        self, questions: list[Question], sample: int, done: "_Counter"
    ) -> tuple[Floats, Verdict, Bool[Tensor, "R T"]]:
        """Scores every relation between each question's head and tail.

        A probability needs the scores of all entities, not of the tail alone, so a relation costs a
        whole pass of the model. Relation by relation, the heads share what a relation makes alike.
        """
        asked = torch.tensor([(q.head, q.tail) for q in questions])
        heads, head_of = torch.unique(asked[:, 0], return_inverse=True)
        num_relations = len(self.graph.relations)
        scores = np.zeros((num_relations, len(questions)))
        verdict = Verdict(np.zeros_like(scores), np.zeros_like(scores))
        known = torch.zeros(num_relations, len(questions), dtype=torch.bool)
        pairs = torch.cartesian_prod(torch.arange(num_relations), torch.arange(len(heads)))
        for part in pairs.split(min(self.batch_rows, RELATION_ROWS)):
            relations, numbers = part.unbind(1)
            batch = self.score(heads[numbers], relations, sample=sample)
            rows, columns = torch.nonzero(numbers[:, None] == head_of, as_tuple=True)
            tails, at = asked[columns, 1], (relations[rows].numpy(), columns.numpy())
            found = batch.scores[rows, tails]
            judged = self.judge.judge(found[:, None], batch.context.take(rows.numpy()))
            scores[at] = found.double().numpy()
            verdict.probability[at] = judged.probability[:, 0]
            verdict.log_odds[at] = judged.log_odds[:, 0]
            known[relations[rows], columns] = batch.known[rows, tails]
            done.add(len(part))
        return scores, verdict, known

    def _make_answers(
        self,
        chosen: list[int],
        draws: "list[Draw]",
        known: Bool[Tensor, " N"],
        *,
        names: tuple[str, ...],
        labels: Mapping[str, str],
    ) -> list[Answer]:
        usual = draws[0]
        return [
            Answer(
                name=names[number],
                rank=place + 1,
                score=float(usual.scores[place]),
                probability=float(usual.probabilities[place]),
                known=bool(known[number]),
                label=labels.get(names[number]),
                spread=spread_of(draws, place) if len(draws) > 1 else None,
            )
            for place, number in enumerate(chosen)
            if np.isfinite(usual.scores[place])  # left out by new_only
        ]

    def _answers(self, question: Question, ranking: Ranking) -> Answers:
        entities, relations = self.graph.entities.names, self.graph.relations.names
        head = None if question.head is None else entities[question.head]
        relation = None if question.relation is None else relations[question.relation]
        tail = None if question.tail is None else entities[question.tail]
        readable = [
            "?" if head is None else self.labels.entity(head),
            "?" if relation is None else self.labels.relation(relation),
            "?" if tail is None else self.labels.entity(tail),
        ]
        return Answers(
            head=head,
            relation=relation,
            tail=tail,
            asks_for=question.asks_for,
            answers=ranking.answers,
            num_candidates=ranking.num_candidates,
            num_known=ranking.num_known,
            probability_kind=self.judge.kind,
            shown_as=f"({', '.join(readable)})" if self.labels else None,
        )


@dataclass(frozen=True)
class Draw:
    """Chosen candidates under one draw of the noise."""

    scores: Floats
    probabilities: Floats
    in_top: np.ndarray

    def row(self, number: int) -> "Draw":
        """Returns one question's part."""
        return Draw(self.scores[number], self.probabilities[number], self.in_top[number])


def spread_of(draws: Sequence[Draw], place: int) -> Spread:
    """Returns how a candidate fared over the draws."""
    scores = np.array([draw.scores[place] for draw in draws])
    probabilities = np.array([draw.probabilities[place] for draw in draws])
    return Spread(
        samples=len(draws),
        score_mean=float(scores.mean()),
        score_deviation=float(scores.std(ddof=1)),
        probability_mean=float(probabilities.mean()),
        probability_deviation=float(probabilities.std(ddof=1)),
        top_k_share=float(np.mean([draw.in_top[place] for draw in draws])),
    )


class _Counter:
    """Counts passes of the model for a progress bar."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def add(self, passes: int) -> None:
        self._done += passes
        if self._progress is not None:
            self._progress(self._done, self._total)
