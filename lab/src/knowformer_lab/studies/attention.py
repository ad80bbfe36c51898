"""Kind attention: what the answers to given questions attend to, and whether that is a pattern.

The paper shows, for five questions, the ten entities that an answer attends to most, and says that
they are of its kind: nutrients of an egg attend to nutrients of an egg. Two fractions measure that,
for every test answer to a question (h, r, ?). Of the entities attended to most, how many are

    answers   other known answers of the same question: r(h, w) is a fact
    tails     known tails of the same relation: r(x, w) is a fact for some x

Query prototypes as the paper defines them, entities that share a neighbour by r, lie between the
two. Chance is the same fraction among entities with about as many facts: attention that goes to
well-connected entities alone does no better. Known facts are those of all splits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from knowformer.choices import NUM_PROTOTYPES
from knowformer.data.dataset import Dataset, Split
from knowformer.errors import ConfigError
from knowformer.evaluation.evaluate import Progress
from knowformer.evaluation.ranks import filtered_ranks
from knowformer.explanation.find.attention_rows import AttentionRows, largest
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers
from knowformer.scoring.scorer import Scorer
from knowformer_lab.experiment import AskedQuestion

NUM_BEST = 10  # answers of the model that are named
NUM_EQUALS = 20  # entities that chance is measured on, for each attended one; more where they tie

Kin = Literal["answer", "tail", "none"]
Truth = Literal["test", "known", "none"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Named(_Record):
    """An entity, and its readable name if it has one."""

    entity: str
    label: str


class Candidate(Named):
    """One of the model's best answers, facts of the graph left out."""

    score: float
    truth: Truth
    """Whether it makes a test fact, another known fact, or none."""


class Attended(Named):
    """An entity that an answer attends to."""

    value: float
    """Attention over even attention, or influence on the answer's log-odds."""
    kin: Kin
    """What it is besides: another answer of the question, a tail of the relation, or neither."""


class Fractions(_Record):
    """How many of some entities are known answers of the question, and tails of the relation."""

    answers: float
    tails: float


class Compared(_Record):
    """Fractions of the entities attended to most, and of entities with as many facts."""

    found: Fractions
    chance: Fractions


class AnswerStudy(Named):
    """One test answer."""

    rank: float
    """Realistic and filtered."""
    attention: Compared
    layers: list[Compared]
    """By attention in one layer, the first layer first."""
    influence: Compared | None
    """Of the entities with the largest influence; None where none speaks for the answer."""


class QuestionStudy(_Record):
    """One question with all its test answers."""

    head: Named
    relation: Named
    published_as: str | None
    everyone: Fractions
    """Of all entities of the graph but an answer: what attention that knows nothing would find."""
    best: list[Candidate]
    answers: list[AnswerStudy]
    """Every test answer, the best rank first."""
    attended: list[Attended]
    """What the first of ``answers`` attends to most."""
    attended_by_layer: list[list[Attended]]
    influential: list[Attended]


class AttentionStudy(_Record):
    """All questions."""

    num_attended: int
    questions: list[QuestionStudy]


@dataclass(frozen=True)
class FoundQuestion:
    """A question in ids, with the tails of its test facts."""

    asked: AskedQuestion
    head: int
    relation: int
    answers: Int[Tensor, " A"]


def find_questions(dataset: Dataset, asked: list[AskedQuestion]) -> list[FoundQuestion]:
    """Looks questions up in a data set.

    Raises:
        VocabularyError: a name is unknown.
        ConfigError: a question has no test fact, so there is no answer to study.
    """
    entities, relations = dataset.test.graph.entities, dataset.test.graph.relations
    facts = dataset.test.facts
    questions: list[FoundQuestion] = []
    for question in asked:
        head = dataset.labels.find_entity(question.head, entities)
        relation = dataset.labels.find_relation(question.relation, relations)
        answers = facts[(facts[:, 0] == head) & (facts[:, 1] == relation), 2]
        if len(answers) == 0:
            raise ConfigError(
                f"Expected a question with test facts in {dataset.name}, got ({question.head}, "
                f"{question.relation}, ?), which has none. Ask for another head or relation."
            )
        questions.append(FoundQuestion(question, head, relation, answers))
    return questions


def measure_attention(
    model: KnowFormer,
    dataset: Dataset,
    asked: list[AskedQuestion],
    *,
    seed: int,
    progress: Progress | None = None,
) -> AttentionStudy:
    """Asks every question on the test graph and follows the attention of every test answer.

    Args:
        model: the model.
        dataset: gives the test facts, their graph and what is known.
        asked: the questions.
        seed: of the identity noise, so that scores are those of answers and evaluations.
        progress: called with test answers done and in all.

    Raises:
        ConfigError: the model has no attention, a question no test fact, or a test answer is
            outside of its question's view.
        VocabularyError: a name is unknown.
    """
    if not model.config.attention:
        raise ConfigError("Expected a model with attention to study it, got one without.")
    split = dataset.test
    questions = find_questions(dataset, asked)
    scorer = Scorer(model, split.graph, seed=seed)
    finder = EvidenceFinder.on_split(model, split, seed=seed)
    total = sum(len(question.answers) for question in questions)
    done = count(1)

    def tick() -> None:
        if progress is not None:
            progress(next(done), total)

    studies = [_OneQuestion(dataset, scorer, finder, each).study(tick) for each in questions]
    return AttentionStudy(num_attended=NUM_PROTOTYPES, questions=studies)


class _Most(NamedTuple):
    """The entities with the largest values, and the values of all."""

    entities: list[int]
    values: Float[Tensor, " V"]


@dataclass(frozen=True)
class _Followed:
    """What one answer attends to most: in all, in each layer, and by influence."""

    answer: int
    attention: _Most
    layers: list[_Most]
    influence: _Most

    @classmethod
    def of(cls, rows: AttentionRows, answer: int) -> "_Followed":
        def most(values: Float[Tensor, " V"]) -> _Most:
            return _Most(largest(values, NUM_PROTOTYPES, besides=answer), values)

        influential = rows.most_influential(NUM_PROTOTYPES, answer)
        return cls(
            answer=answer,
            attention=most(rows.lift.mean((0, 1))),
            layers=[most(layer) for layer in rows.lift.mean(1)],
            influence=_Most(influential, rows.influence.sum((0, 1))),
        )


class _OneQuestion:
    """A question being studied; what is known of it is looked up once."""

    def __init__(
        self, dataset: Dataset, scorer: Scorer, finder: EvidenceFinder, question: FoundQuestion
    ) -> None:
        self._dataset = dataset
        self._split: Split = dataset.test
        self._finder = finder
        self._question = question
        head, relation = torch.tensor([question.head]), torch.tensor([question.relation])
        self._scores = scorer.score(head, relation)
        self._known = self._answers_in(self._split.known)
        known = self._split.known
        self._is_tail = torch.zeros_like(self._known)
        self._is_tail[known[known[:, 1] == question.relation, 2]] = True
        self._degree = self._split.graph.adjacency.edges.offsets.diff()

    def study(self, tick: Callable[[], None]) -> QuestionStudy:
        """Ranks the test answers, then follows the attention of each; calls ``tick`` after each."""
        question = self._question
        rows = torch.zeros(len(question.answers), dtype=torch.long)
        known = self._known.nonzero().squeeze(1)
        of_query = (torch.zeros_like(known), known)
        ranks = filtered_ranks(self._scores, of_query, rows, question.answers).realistic
        order = torch.argsort(ranks, stable=True)
        followed: list[_Followed] = []
        for answer in question.answers[order].tolist():
            followed.append(self._follow(answer))
            tick()
        first = followed[0]
        relation = self._split.graph.relations.names[question.relation]
        return QuestionStudy(
            head=self._named(question.head),
            relation=Named(entity=relation, label=self._dataset.labels.relation(relation)),
            published_as=question.asked.published_as,
            everyone=self._fractions(torch.ones_like(self._known), first.answer),
            best=self._best(),
            answers=[
                self._answer(each, rank)
                for each, rank in zip(followed, ranks[order].tolist(), strict=True)
            ],
            attended=self._attended(first.attention),
            attended_by_layer=[self._attended(layer) for layer in first.layers],
            influential=self._attended(first.influence),
        )

    def _follow(self, answer: int) -> _Followed:
        question = self._question
        rows = self._finder.attention(
            self._finder.prediction(question.head, question.relation, answer)
        )
        if rows is None:
            name = self._named(answer).label
            raise ConfigError(
                f"Expected test answers that the model sees when it is asked, got {name}, which is "
                "outside of its question's view. Ask another question, or train with a larger "
                "model.view_size."
            )
        return _Followed.of(rows, answer)

    def _answer(self, followed: _Followed, rank: float) -> AnswerStudy:
        def compared(most: _Most) -> Compared:
            return self._compared(most.entities, followed.answer)

        return AnswerStudy(
            **self._named(followed.answer).model_dump(),
            rank=rank,
            attention=compared(followed.attention),
            layers=[compared(layer) for layer in followed.layers],
            influence=compared(followed.influence) if followed.influence.entities else None,
        )

    def _best(self) -> list[Candidate]:
        seen = self._answers_in(self._split.graph.facts)
        scores = self._scores.dense()[0].masked_fill(seen, -torch.inf)
        best = torch.argsort(scores, descending=True, stable=True)[:NUM_BEST].tolist()
        asked_for = set(self._question.answers.tolist())
        return [
            Candidate(
                **self._named(w).model_dump(),
                score=scores[w].item(),
                truth="test" if w in asked_for else "known" if self._known[w] else "none",
            )
            for w in best
            if scores[w].isfinite()
        ]

    def _attended(self, most: _Most) -> list[Attended]:
        return [
            Attended(
                **self._named(w).model_dump(),
                value=most.values[w].item(),
                kin="answer" if self._known[w] else "tail" if self._is_tail[w] else "none",
            )
            for w in most.entities
        ]

    def _compared(self, entities: list[int], answer: int) -> Compared:
        attended = torch.zeros_like(self._known)
        attended[entities] = True
        equals = [self._fractions(self._equals(w, answer), answer) for w in entities]
        chance = Fractions(
            answers=sum(each.answers for each in equals) / len(equals),
            tails=sum(each.tails for each in equals) / len(equals),
        )
        return Compared(found=self._fractions(attended, answer), chance=chance)

    def _equals(self, entity: int, answer: int) -> Bool[Tensor, " V"]:
        """The other entities whose number of facts is nearest, with all that tie for last."""
        apart = (self._degree - self._degree[entity]).abs().double()
        apart[[entity, answer]] = torch.inf
        num_others = min(NUM_EQUALS, int(apart.isfinite().sum()))
        return apart <= apart.kthvalue(num_others).values

    def _fractions(self, among: Bool[Tensor, " V"], answer: int) -> Fractions:
        others = among.clone()
        others[answer] = False
        return Fractions(
            answers=self._known[others].double().mean().item(),
            tails=self._is_tail[others].double().mean().item(),
        )

    def _answers_in(self, facts: Int[Tensor, "N 3"]) -> Bool[Tensor, " V"]:
        graph, question = self._split.graph, self._question
        known = KnownAnswers(
            facts, num_entities=len(graph.entities), num_relations=len(graph.relations)
        )
        return known.mask(torch.tensor([question.head]), torch.tensor([question.relation]))[0]

    def _named(self, entity: int) -> Named:
        name = self._split.graph.entities.names[entity]
        return Named(entity=name, label=self._dataset.labels.entity(name))
