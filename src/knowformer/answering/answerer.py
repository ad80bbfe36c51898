"""Answerer: questions in names to answers in names; the engine between them knows ids alone."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Unpack

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.answering.candidates import HowToAnswer, Names, find_candidates
from knowformer.answering.engine import Engine, Progress
from knowformer.answering.missing import rank_missing_facts
from knowformer.answering.questions import Question, build_question
from knowformer.answering.ranking import Options, Ranking
from knowformer.answering.results import Answer, Answers, MissingFact, MissingFacts
from knowformer.calibration.calibrator import Calibrator
from knowformer.choices import Sweep
from knowformer.data.labels import Labels
from knowformer.errors import ConfigError, VocabularyError
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.scores import Scores

CHUNK = 512  # questions that are grouped together

NamesOrIds = Sequence[str] | Sequence[int] | Int[Tensor, " B"]
"""Of entities or relations, one for each query."""


class Answerer:
    """Answers questions on one graph, in its names and labels; several threads may ask at once."""

    def __init__(
        self,
        model: KnowFormer,
        graph: KnowledgeGraph,
        *,
        known: KnownAnswers,
        calibrator: Calibrator,
        labels: Labels,
        seed: int,
        threads: int = 0,
    ) -> None:
        """Binds a model to a graph; see ``Engine``.

        Args:
            model: the model.
            graph: its facts are what the model sees.
            known: answers that are marked as known; at least those of the graph's facts.
            calibrator: makes probabilities of scores.
            labels: readable names.
            seed: of the identity noise.
            threads: CPU threads; 0 takes all cores.
        """
        self.graph = graph
        self.labels = labels
        self._model = model
        self._known = known
        self._seed = seed
        self._engine = Engine(
            model,
            graph,
            known=known,
            calibrator=calibrator,
            seed=seed,
            threads=threads,
        )

    def use(self, calibrator: Calibrator) -> None:
        """Replaces the calibrator; questions under way are still answered with the old one."""
        self._engine = self._engine.with_calibrator(calibrator)

    def question(
        self, *, head: str | None = None, relation: str | None = None, tail: str | None = None
    ) -> Question:
        """Resolves names, or readable names, to ids.

        Raises:
            ConfigError: not exactly two of the three were given.
            VocabularyError: a name is unknown, or a readable name stands for several.
        """
        return build_question(self.graph, self.labels, head=head, relation=relation, tail=tail)

    def score(self, heads: NamesOrIds, relations: NamesOrIds) -> Scores:
        """Scores queries (head, relation, ?); see ``Reasoner.score``."""
        graph, labels = self.graph, self.labels
        asked_heads = _ids(heads, labels.find_entity, graph.entities, len(graph.entities))
        num_relations = num_with_inverses(len(graph.relations))
        asked = _ids(relations, labels.find_relation, graph.relations, num_relations)
        if len(asked_heads) != len(asked):
            raise ConfigError(
                f"Expected a relation for every head, got {len(asked_heads):,} heads and "
                f"{len(asked):,} relations."
            )
        return self._engine.score(asked_heads, asked).scores

    def options(self, **how: Unpack[HowToAnswer]) -> Options:
        """Resolves options to ids; raises what ``among`` raises, or ConfigError."""
        return Options(
            how.get("k", 10),
            how.get("new_only", False),
            how.get("samples", 1),
            how.get("typical", False),
            self.among(how.get("candidates"), how.get("of_type")),
        )

    def among(self, candidates: Names | None, of_type: str | None) -> tuple[int, ...] | None:
        """Returns which entities may answer; see ``find_candidates``."""
        return find_candidates(self.graph, self.labels, names=candidates, of_type=of_type)

    def answer(
        self,
        questions: Sequence[Question],
        options: Options,
        *,
        progress: Progress | None = None,
    ) -> list[Answers]:
        """Answers some questions at once; progress counts passes of the model."""
        engine = self._engine
        rankings = engine.rank(questions, options, progress=progress)
        pairs = zip(questions, rankings, strict=True)
        return [self._answers(*pair, engine.calibrator) for pair in pairs]

    def stream(self, questions: Iterable[Question], options: Options) -> Iterator[Answers]:
        """Answers questions in their order, a chunk at a time."""
        source = iter(questions)
        while chunk := list(islice(source, CHUNK)):
            yield from self.answer(chunk, options)

    def missing_facts(
        self,
        relation: str,
        *,
        k: int,
        sweep: Sweep = "heads",
        every_entity: bool = False,
        among: tuple[int, ...] | None = None,
        progress: Progress | None = None,
    ) -> MissingFacts:
        """Ranks the most probable facts of a relation that are not known.

        Raises:
            DataError: no entity of the graph takes part in the relation.
            VocabularyError: the relation is unknown.
        """
        engine = self._engine
        number = self.labels.find_relation(relation, self.graph.relations)
        ranking = rank_missing_facts(
            engine,
            number,
            k=k,
            sweep=sweep,
            every_entity=every_entity,
            among=among,
            progress=progress,
        )
        named, labels = self.graph.entities.name, self.labels.entities
        name = self.graph.relations.names[number]
        ends = zip(ranking.heads.tolist(), ranking.tails.tolist(), strict=True)
        facts = [
            MissingFact(
                head=named(head),
                relation=name,
                tail=named(tail),
                rank=place + 1,
                score=float(ranking.scores[place]),
                probability=float(ranking.probabilities[place]),
                head_label=labels.get(named(head)),
                tail_label=labels.get(named(tail)),
            )
            for place, (head, tail) in enumerate(ends)
        ]
        return MissingFacts(
            name,
            facts,
            ranking.num_questions,
            ranking.num_candidates,
            engine.calibrator.kind,
            engine.calibrator.basis(name, "tail" if sweep == "heads" else "head"),
        )

    def fingerprint(self) -> str:
        """Returns a checksum of all that answers depend on besides the questions and options."""
        digest = hashlib.sha256()
        for name, weights in self._model.state_dict().items():
            digest.update(name.encode())
            digest.update(weights.contiguous().numpy().tobytes())
        digest.update(self._engine.calibrator.fingerprint.encode())
        digest.update(self.graph.facts.contiguous().numpy().tobytes())
        digest.update(np.ascontiguousarray(self._known.keys).data)
        names = [list(self.graph.entities), list(self.graph.relations)]
        labels = [sorted(self.labels.entities.items()), sorted(self.labels.relations.items())]
        digest.update(json.dumps([self._seed, names, labels]).encode())
        return digest.hexdigest()

    def _answers(self, question: Question, ranking: Ranking, calibrator: Calibrator) -> Answers:
        entities, relations = self.graph.entities.names, self.graph.relations.names
        head = None if question.head is None else entities[question.head]
        relation = None if question.relation is None else relations[question.relation]
        tail = None if question.tail is None else entities[question.tail]
        readable = [
            "?" if head is None else self.labels.entity(head),
            "?" if relation is None else self.labels.relation(relation),
            "?" if tail is None else self.labels.entity(tail),
        ]
        names, labels = entities, self.labels.entities
        if question.asks_for == "relation":
            names, labels = relations, self.labels.relations
        answers = [
            Answer(
                name=names[candidate.id],
                rank=rank,
                score=candidate.score,
                probability=candidate.probability,
                known=candidate.known,
                label=labels.get(names[candidate.id]),
                spread=candidate.spread,
                share=candidate.share,
                typical_rank=candidate.typical_rank,
            )
            for rank, candidate in enumerate(ranking.candidates, start=1)
        ]
        basis = None
        if relation is not None:
            basis = calibrator.basis(relation, "head" if head is None else "tail")
        return Answers(
            head=head,
            relation=relation,
            tail=tail,
            asks_for=question.asks_for,
            answers=answers,
            num_candidates=ranking.num_candidates,
            num_known=ranking.num_known,
            probability_kind=calibrator.kind,
            shown_as=f"({', '.join(readable)})" if self.labels else None,
            probability_basis=basis,
        )


def _ids(
    given: NamesOrIds, find: Callable[[str, Vocabulary], int], names: Vocabulary, number: int
) -> Int[Tensor, " B"]:
    """Returns ids as they are, and names as ids."""
    rows: list[str | int] = given.tolist() if isinstance(given, Tensor) else list(given)
    ids = [find(row, names) if isinstance(row, str) else int(row) for row in rows]
    wrong = [each for each in ids if not 0 <= each < number]
    if wrong:
        raise VocabularyError(
            f"Expected {names.kind} ids from 0 to {number - 1:,}, got {wrong[0]:,}."
        )
    return torch.tensor(ids, dtype=torch.long)
