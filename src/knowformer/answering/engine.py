"""The engine: questions in ids to rankings in ids, in batches of bounded memory.

Questions with the same given entity and relation share one pass of the model. A relation question
takes two passes per relation, from its head and from its tail: those with the same head, or the
same tail, share them, and others are asked side by side, relation by relation, which shares a part
of each pass. A question's answers do not depend on its batch.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.answering.questions import Question
from knowformer.answering.ranking import Draw, Options, Ranking, RankingCache, build_ranking
from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.features import QueryFeatures, query_features
from knowformer.calibration.relation_choice import relation_shares
from knowformer.calibration.relation_evidence import gather_evidence, num_queries
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.roles import roles_of
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.scores import Scores
from knowformer.scoring.batch_size import queries_at_once
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import derive_seed

OTHERS = 8  # heads of a relation that say how its answers typically rank
OTHER_SCORES = 20_000_000  # of such heads that are kept: about 100 MB

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

    def among(self, ids: tuple[int, ...] | None) -> "ScoredBatch":
        """Returns the batch with these entities, rising, as the only candidates; None: with all.

        One that its query does not see stays, with the lowest score of all that it sees.
        """
        if ids is None:
            return self
        entities = torch.tensor(ids)
        size, width = len(self.scores), len(entities)
        queries = torch.arange(size).repeat_interleave(width)
        every = entities.repeat(size)
        scores = Scores(
            self.scores.at(queries, every),
            torch.arange(size + 1) * width,
            self.scores.num_entities,
            entities=every,
        )
        row, answer = self.known_pairs
        kept = torch.isin(answer, entities)
        known = (row[kept], answer[kept])
        return ScoredBatch(scores, scores.mask(*known), known, self.features)

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
        self._seen = seen = KnownAnswers.of(graph)
        self._cache = RankingCache()

        # Neither of these holds the engine: one that nobody needs goes at once, and the next
        # snapshot of a large graph takes its memory. In a cycle it would wait for the collector.
        @cache
        def scorer(sample: int) -> Scorer:
            return Scorer(model, graph, seed=seed, sample=sample, threads=threads)

        self._scorer = scorer

        @lru_cache(maxsize=max(OTHERS, OTHER_SCORES // (OTHERS * max(1, len(graph.entities)))))
        def others(relation: int) -> tuple[list[int], ScoredBatch]:
            """Scores some heads of a relation; one more than needed: one may be asked about."""
            every = roles_of(graph.adjacency).entities(relation)
            random = np.random.default_rng(derive_seed(seed, "typical", relation))
            heads = torch.from_numpy(random.permutation(every)[: OTHERS + 1])
            queries = (heads, torch.full_like(heads, relation))
            return heads.tolist(), _score(scorer(0), *queries, seen=seen, known=known)

        self._others = others

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
        self,
        heads: Int[Tensor, " B"],
        relations: Int[Tensor, " B"],
        *,
        sample: int = 0,
        among: tuple[int, ...] | None = None,
    ) -> ScoredBatch:
        """Scores queries (head, relation, ?) against all entities that they see, or some."""
        scorer, known = self._scorer(sample), self._known
        return _score(scorer, heads, relations, seen=self._seen, known=known).among(among)

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
        passes = num_queries(_pairs(relation_questions), len(self.graph.relations))
        total = options.samples * (len(entity_questions) + passes)
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
            batch = self.score(heads, relations, sample=sample, among=options.among)
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
                num_candidates=len(options.among or self.graph.entities),
                num_known=int(num_known[number]),
                typical_ranks=self._typical_ranks(
                    int(heads[number]), int(relations[number]), entities[number], options
                ),
            )
            for number, of_question in enumerate(draws)
        ]

    def _typical_ranks(
        self, head: int, relation: int, entities: Int[Tensor, " K"], options: Options
    ) -> Int[np.ndarray, " K"] | None:
        """Returns the median rank of entities as answers for other heads of a relation.

        None if it was not asked for, or the relation has no other heads.
        """
        heads, batch = self._others(relation) if options.typical else ([], None)
        rows = torch.tensor([row for row, other in enumerate(heads) if other != head][:OTHERS])
        if batch is None or len(rows) == 0:
            return None
        narrowed = batch.among(options.among)
        allowed = narrowed.allowed(new_only=options.new_only)[rows]
        ranks = [
            1 + (allowed > narrowed.scores.at(rows, entity.expand(len(rows)))[:, None]).sum(1)
            for entity in entities.clamp(min=0)
        ]
        return torch.stack(ranks).median(1).values.numpy()

    def _rank_relations(
        self, questions: list[Question], options: Options, done: "_Counter"
    ) -> list[Ranking]:
        """Ranks (head, r, tail) over every relation r that has a name, by both directions."""
        pairs, num_relations = _pairs(questions), len(self.graph.relations)
        relations = torch.arange(num_relations).expand(len(questions), -1)
        ends = pairs.repeat_interleave(num_relations, 0)
        facts = torch.stack([ends[:, 0], relations.flatten(), ends[:, 1]], 1)
        known = self._known.holds(facts).view(relations.shape).numpy()
        allowed = ~known if options.new_only else np.ones_like(known)
        draws: list[list[Draw]] = [[] for _ in questions]
        chosen: list[Int[np.ndarray, " K"]] = []
        for sample in range(options.samples):
            evidence = gather_evidence(
                partial(self._score_features, sample=sample),
                self.calibrator,
                roles_of(self.graph.adjacency),
                pairs,
                relations,
                batch_size=self.batch_size,
                progress=done.part(),
            )
            scores = self.calibrator.relation_choice.scores(evidence.columns)
            shares = relation_shares(scores, allowed)
            for number, of_question in enumerate(draws):
                order = np.argsort(-scores[number], kind="stable")
                top = order[allowed[number, order]][: options.k]
                if sample == 0:
                    chosen.append(top)
                at, in_top = chosen[number], np.isin(chosen[number], top)
                values = evidence.probabilities[number, at]
                of_question.append(Draw(scores[number, at], values, in_top, shares[number, at]))
        return [
            build_ranking(
                chosen[number].tolist(),
                of_question,
                known[number, chosen[number]],
                num_candidates=num_relations,
                num_known=int(known[number].sum()),
            )
            for number, of_question in enumerate(draws)
        ]

    def _score_features(
        self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"], *, sample: int
    ) -> tuple[Scores, QueryFeatures]:
        batch = self.score(heads, relations, sample=sample)
        return batch.scores, batch.features


def _score(
    scorer: Scorer,
    heads: Int[Tensor, " B"],
    relations: Int[Tensor, " B"],
    *,
    seen: KnownAnswers,
    known: KnownAnswers,
) -> ScoredBatch:
    scores = scorer.score(heads, relations)
    features = query_features(scores, scores.mask(*seen.lookup(heads, relations)), relations)
    pairs = known.lookup(heads, relations)
    return ScoredBatch(scores, scores.mask(*pairs), pairs, features)


def _pairs(questions: Sequence[Question]) -> Int[Tensor, "Q 2"]:
    ends = [(q.head, q.tail) for q in questions]
    return torch.tensor(ends, dtype=torch.long).view(-1, 2)


class _Counter:
    """Counts passes of the model for a progress bar."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def add(self, passes: int) -> None:
        self._done += passes
        if self._progress is not None:
            self._progress(self._done, self._total)

    def part(self) -> Progress:
        """Returns what counts the passes of a part of the work, from here on."""
        before = self._done
        return lambda done, _: self.add(before + done - self._done)
