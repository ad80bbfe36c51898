"""The engine: questions in ids to rankings in ids, in batches of bounded memory.

Questions with the same given entity and relation share one pass of the model. A relation question
takes a pass per relation, whatever its tail: those with the same head share them all, and those
with other heads are asked side by side, relation by relation, which shares a part of each pass. A
question's answers do not depend on its batch.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.answering.questions import Question
from knowformer.answering.ranking import Draw, Options, Ranking, RankingCache, build_ranking
from knowformer.calibration.calibrator import Calibrator, Probabilities
from knowformer.calibration.features import QueryFeatures, query_features
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.scores import Scores
from knowformer.scoring.batch_size import queries_at_once
from knowformer.scoring.scorer import Scorer

RELATION_QUERIES = 32  # passes between two reports of progress: a relation question takes many

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ScoredBatch:
    """Queries by candidates: scores and known facts, and what the scores are compared with."""

    scores: Scores
    known: Bool[Tensor, "B W"]
    known_pairs: tuple[Int[Tensor, " P"], Int[Tensor, " P"]]  # query and answer, seen or not
    features: QueryFeatures

    def allowed(self, *, new_only: bool) -> Float[Tensor, "B W"]:
        """Returns the table of scores, with -inf for known facts if these are left out."""
        table = self.scores.table
        return table.masked_fill(self.known, -torch.inf) if new_only else table

    def is_known(
        self, queries: Int[Tensor, " F"], entities: Int[Tensor, " F"]
    ) -> Bool[Tensor, " F"]:
        """Returns whether each entity is a known answer of its query."""
        width = self.scores.num_entities
        return torch.isin(
            queries * width + entities, self.known_pairs[0] * width + self.known_pairs[1]
        )

    @property
    def num_known(self) -> Int[Tensor, " B"]:
        """How many known answers each query has."""
        return torch.bincount(self.known_pairs[0], minlength=len(self.scores))


class Engine:
    """A model on a graph, with what is known there; several threads may ask at once."""

    def __init__(
        self,
        model: KnowFormer,
        graph: KnowledgeGraph,
        *,
        known: KnownAnswers,
        calibrator: Calibrator,
        seed: int,
        threads: int = 0,
    ) -> None:
        """Binds a model to a graph.

        Args:
            model: the model.
            graph: its facts are what the model sees.
            known: answers that are marked as known; at least those of the graph's facts.
            calibrator: makes probabilities of scores.
            seed: of the identity noise.
            threads: CPU threads; 0 takes all cores.
        """
        self.graph = graph
        self.calibrator = calibrator
        self._known = known
        self._seen = KnownAnswers.of(graph)
        self._cache = RankingCache()

        @cache
        def scorer(sample: int) -> Scorer:
            return Scorer(model, graph, seed=seed, sample=sample, threads=threads)

        self._scorer = scorer

    def with_calibrator(self, calibrator: Calibrator) -> "Engine":
        """Returns an engine that makes other probabilities, with a cache of its own."""
        other = copy(self)
        other.calibrator = calibrator
        other._cache = RankingCache()
        return other

    @property
    def batch_size(self) -> int:
        """Returns how many queries' scores are held at once."""
        return queries_at_once(len(self.graph.entities))

    def score(
        self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"], *, sample: int = 0
    ) -> ScoredBatch:
        """Scores queries (head, relation, ?) against every entity that they see."""
        scores = self._scorer(sample).score(heads, relations)
        seen = scores.mask(*self._seen.lookup(heads, relations))
        known = self._known.lookup(heads, relations)
        features = query_features(scores, seen, relations)
        return ScoredBatch(scores, scores.mask(*known), known, features)

    def rank(
        self,
        questions: Sequence[Question],
        options: Options,
        *,
        progress: Progress | None = None,
    ) -> list[Ranking]:
        """Answers some questions at once.

        Args:
            questions: the questions.
            options: how to answer.
            progress: called with passes of the model done and in all.
        """
        distinct = dict.fromkeys(questions)
        rankings = self._cache.get(options, distinct)
        todo = [q for q in distinct if q not in rankings]
        entity_questions = [q for q in todo if q.relation is not None]
        relation_questions = [q for q in todo if q.relation is None]
        num_heads = len({q.head for q in relation_questions})
        total = options.samples * (len(entity_questions) + num_heads * len(self.graph.relations))
        done = _Counter(total, progress)
        # Equal relations side by side: they share their relation vectors.
        order = sorted((*self._query(q), n) for n, q in enumerate(entity_questions))
        for first in range(0, len(order), self.batch_size):
            batch = [entity_questions[n] for _, _, n in order[first : first + self.batch_size]]
            rankings |= zip(batch, self._rank_entities(batch, options, done), strict=True)
        if relation_questions:
            ranked = self._rank_relations(relation_questions, options, done)
            rankings |= zip(relation_questions, ranked, strict=True)
        self._cache.add(options, {q: rankings[q] for q in todo})
        return [rankings[question] for question in questions]

    def _query(self, question: Question) -> tuple[int, int]:
        """Returns (relation, entity) as the model is asked; heads through the inverse relation."""
        assert question.relation is not None
        if question.head is not None:
            return question.relation, question.head
        assert question.tail is not None
        # Who has this tail? The same question read backwards.
        return inverse_of(question.relation, len(self.graph.relations)), question.tail

    def _rank_entities(
        self, questions: list[Question], options: Options, done: "_Counter"
    ) -> list[Ranking]:
        relations, heads = torch.tensor([self._query(q) for q in questions]).unbind(1)
        draws: list[list[Draw]] = [[] for _ in questions]
        num_known = torch.zeros(len(questions))
        chosen = entities = known = torch.empty(0)
        for sample in range(options.samples):
            batch = self.score(heads, relations, sample=sample)
            allowed = batch.allowed(new_only=options.new_only)
            best = allowed.sort(dim=1, descending=True, stable=True)
            k = min(options.k, allowed.shape[1])
            if sample == 0:
                chosen = best.indices[:, :k]
                entities, known = batch.scores.entities_at(chosen), batch.known.gather(1, chosen)
                num_known = batch.num_known
            scores = allowed.gather(1, chosen)
            probabilities = self.calibrator.probabilities(scores, batch.features)
            # Among the k best: at least as high as the last of them.
            in_top = (scores >= best.values[:, k - 1 : k]).numpy()
            columns = (scores.double().numpy(), probabilities.values, in_top)
            for number, of_question in enumerate(draws):
                of_question.append(Draw(*(column[number] for column in columns)))
            done.add(len(questions))
        return [
            build_ranking(
                entities[number].tolist(),
                of_question,
                known[number].numpy(),
                num_candidates=len(self.graph.entities),
                num_known=int(num_known[number]),
            )
            for number, of_question in enumerate(draws)
        ]

    def _rank_relations(
        self, questions: list[Question], options: Options, done: "_Counter"
    ) -> list[Ranking]:
        """Ranks (head, r, tail) over every relation r that has a name."""
        k = min(options.k, len(self.graph.relations))
        draws: list[list[Draw]] = [[] for _ in questions]
        chosen: list[list[int]] = []
        known = np.zeros((0, 0), dtype=bool)
        for sample in range(options.samples):
            scores, probabilities, known = self._score_relations(questions, sample, done)
            for number, of_question in enumerate(draws):
                hidden = known[number] if options.new_only else np.zeros_like(known[number])
                order = [r for r in probabilities[number].order().tolist() if not hidden[r]]
                if sample == 0:
                    chosen.append(order[:k])
                at, top = chosen[number], set(order[:k])
                in_top = np.array([relation in top for relation in at], dtype=bool)
                values = probabilities.values[number, at]
                of_question.append(Draw(scores[number, at], values, in_top))
        return [
            build_ranking(
                chosen[number],
                of_question,
                known[number, chosen[number]],
                num_candidates=len(self.graph.relations),
                num_known=int(known[number].sum()),
            )
            for number, of_question in enumerate(draws)
        ]

    def _score_relations(
        self, questions: list[Question], sample: int, done: "_Counter"
    ) -> tuple[Float[np.ndarray, "Q R"], Probabilities, Bool[np.ndarray, "Q R"]]:
        """Scores every relation between each question's head and tail.

        A probability needs the scores of all entities, not of the tail alone, so a relation costs a
        whole pass of the model. Relation by relation, the heads share what a relation makes alike.
        """
        asked = torch.tensor([(q.head, q.tail) for q in questions])
        heads, head_of = torch.unique(asked[:, 0], return_inverse=True)
        num_relations = len(self.graph.relations)
        scores = np.zeros((len(questions), num_relations))
        probabilities = Probabilities(np.zeros_like(scores), np.zeros_like(scores))
        known = np.zeros(scores.shape, dtype=bool)
        queries = torch.cartesian_prod(torch.arange(num_relations), torch.arange(len(heads)))
        for some in queries.split(min(self.batch_size, RELATION_QUERIES)):
            relations, numbers = some.unbind(1)
            batch = self.score(heads[numbers], relations, sample=sample)
            query, question = torch.nonzero(numbers[:, None] == head_of, as_tuple=True)
            tails = asked[question, 1]
            of_tails = batch.scores.at(query, tails)
            features = batch.features.take(query.numpy())
            calibrated = self.calibrator.probabilities(of_tails[:, None], features)
            at = (question.numpy(), relations[query].numpy())
            scores[at] = of_tails.double().numpy()
            probabilities.values[at] = calibrated.values[:, 0]
            probabilities.log_odds[at] = calibrated.log_odds[:, 0]
            known[at] = batch.is_known(query, tails).numpy()
            done.add(len(some))
        return scores, probabilities, known


class _Counter:
    """Counts passes of the model for a progress bar."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def add(self, passes: int) -> None:
        self._done += passes
        if self._progress is not None:
            self._progress(self._done, self._total)
