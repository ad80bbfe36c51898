"""Held-out questions and their candidates: what probabilities are fitted on, and judged by.

The questions are pairs (h, r), both directions, whose head takes part in the relation, whether or
not a fact of the split is missing there: someone who asks does not know that either. The
candidates are the entities that are not known as answers. What the split holds out is true, all
else is false. Most questions miss nothing, so they are sampled apart from those that do, and
weighted back; likewise candidates that score low.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.data.dataset import Split
from knowformer.graph.inverse import num_with_inverses, with_inverse_facts
from knowformer.queries.known_answers import KnownAnswers
from knowformer.seeding import generator

OwnProbability = Literal["softmax", "sigmoid"]

QUESTIONS = 1000  # sampled of those that miss a fact, and as many of the others
BEST = 32  # candidates of a question that are all taken
OTHERS = 32  # taken of the rest, on average
BATCH_FLOATS = 2**21  # of one table of scores: 8 MB

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@runtime_checkable
class ScoresQueries(Protocol):
    """What is needed of a scorer."""

    def score(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Returns the scores of every entity for every query."""
        ...


@dataclass(frozen=True)
class Candidates:
    """Candidates of many questions, one a row; weights make the sample stand for the whole."""

    question: Ints
    relation: Ints  # as asked: an inverse asks for heads
    score: Floats
    crowd: Floats  # see ``crowd``
    num_seen: Ints  # answers of the question that the model sees as facts
    num_candidates: Floats  # entities that are not
    own: Floats  # the model's own probability
    place: Ints  # among the candidates of the question, 0 is the best
    is_true: Bools
    weight: Floats

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, at: Bools) -> "Candidates":
        return Candidates(*(getattr(self, field.name)[at] for field in fields(self)))


def crowd(scores: Float[Tensor, "B V"], seen: Bool[Tensor, "B V"]) -> Float[Tensor, " B"]:
    """Returns how high the candidates of a question score: the log of the mean of exp(score).

    Answers that the model sees as facts are left out, as in training's cross-entropy. A mean, not a
    sum: it compares between graphs of different sizes.
    """
    scores = scores.double()
    others = scores.masked_fill(seen, -torch.inf).logsumexp(1) - num_candidates(seen).log()
    everyone = scores.logsumexp(1) - math.log(max(1, scores.shape[1]))
    return torch.where(seen.all(1), everyone, others)


def num_candidates(seen: Bool[Tensor, "B V"]) -> Float[Tensor, " B"]:
    """Returns how many entities each question has that are not seen as answers; at least one."""
    return (~seen).sum(1).clamp(min=1).double()


def own_log_probabilities(
    scores: Float[Tensor, "B V"], own: OwnProbability
) -> Float[Tensor, "B V"]:
    """What the loss makes of scores, as logarithms: a softmax over entities, or a sigmoid each.

    Unlike raw scores, these compare across relations; unlike probabilities, they do not end in
    ties at 0 and 1.
    """
    return scores.log_softmax(-1) if own == "softmax" else torch.nn.functional.logsigmoid(scores)


def batch_rows(num_entities: int) -> int:
    """Returns how many queries' scores are held at once."""
    return max(1, min(64, BATCH_FLOATS // max(1, num_entities)))


def sample_candidates(
    scorer: ScoresQueries,
    split: Split,
    *,
    own: OwnProbability,
    seed: int,
    questions: int = QUESTIONS,
    progress: Callable[[int, int], None] | None = None,
) -> Candidates:
    """Scores a seeded sample of a split's questions and returns candidates with their truth.

    Args:
        scorer: bound to the split's graph, which does not hold the split's facts.
        split: its facts are true; other known facts are no candidates.
        own: how the model's own probabilities are made.
        seed: root of the sampling.
        questions: at most as many that miss a fact, and as many that miss none.
        progress: called with questions done and questions in all.
    """
    graph = split.graph
    sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
    seen = KnownAnswers(graph.facts, **sizes)
    held_out, known = KnownAnswers(split.facts, **sizes), KnownAnswers(split.known, **sizes)
    asked, weights = _sample_questions(split, questions, seed)
    parts: list[Candidates] = []
    first = 0
    for pairs in asked.split(batch_rows(len(graph.entities))):
        heads, relations = pairs.unbind(1)
        scores = scorer.score(heads, relations)
        is_seen = seen.mask(heads, relations)
        is_true = held_out.mask(heads, relations) & ~is_seen
        is_candidate = ~is_seen & (is_true | ~known.mask(heads, relations))
        numbers = torch.arange(first, first + len(pairs))
        random = generator(seed, "calibration", split.name, "candidates", first)
        parts.append(
            _take(
                scores,
                is_seen,
                is_true & is_candidate,
                is_candidate,
                own=own,
                numbers=numbers,
                relations=relations,
                weights=weights[numbers],
                random=random,
            )
        )
        first += len(pairs)
        if progress is not None:
            progress(first, len(asked))
    names = [field.name for field in fields(Candidates)]
    return Candidates(*(np.concatenate([getattr(p, n) for p in parts]) for n in names))


def _sample_questions(
    split: Split, limit: int, seed: int
) -> tuple[Int[Tensor, "Q 2"], Float[Tensor, " Q"]]:
    """Returns questions (head, relation) in random order, and how many each stands for."""
    num_relations = len(split.graph.relations)
    width = num_with_inverses(num_relations)

    def keys(facts: Int[Tensor, "N 3"]) -> Tensor:
        directed = with_inverse_facts(facts, num_relations)
        distinct: Tensor = torch.unique(directed[:, 0] * width + directed[:, 1])
        return distinct

    missing = keys(split.facts)
    every = keys(torch.cat([split.graph.facts, split.facts]))
    others = every[~torch.isin(every, missing)]
    chosen: list[Tensor] = []
    weights: list[Tensor] = []
    for name, part in (("missing", missing), ("others", others)):
        random = generator(seed, "calibration", split.name, name)
        chosen.append(part[torch.randperm(len(part), generator=random)[:limit]])
        stands_for = len(part) / max(1, len(chosen[-1]))
        weights.append(torch.full((len(chosen[-1]),), stands_for, dtype=torch.double))
    asked = torch.cat(chosen)
    order = torch.randperm(
        len(asked), generator=generator(seed, "calibration", split.name, "order")
    )
    pairs = torch.stack([asked // width, asked % width], 1)
    return pairs[order], torch.cat(weights)[order]


def _take(
    scores: Float[Tensor, "B V"],
    is_seen: Bool[Tensor, "B V"],
    is_true: Bool[Tensor, "B V"],
    is_candidate: Bool[Tensor, "B V"],
    *,
    own: OwnProbability,
    numbers: Int[Tensor, " B"],
    relations: Int[Tensor, " B"],
    weights: Float[Tensor, " B"],
    random: torch.Generator,
) -> Candidates:
    """Takes every true candidate, the best ones, and a few of the rest, weighted."""
    order = scores.masked_fill(~is_candidate, -torch.inf).argsort(
        dim=1, descending=True, stable=True
    )
    place = torch.empty_like(order).scatter_(
        1, order, torch.arange(scores.shape[1]).expand_as(order)
    )
    all_taken = is_candidate & (is_true | (place < BEST))
    rest = is_candidate & ~all_taken
    share = (OTHERS / rest.sum(1).clamp(min=1).double()).clamp(max=1.0)
    draw = torch.rand(scores.shape, generator=random, dtype=torch.double)
    taken = all_taken | (rest & (draw < share[:, None]))
    rows, entities = torch.nonzero(taken, as_tuple=True)
    at_rest = rest[rows, entities]
    return Candidates(
        question=numbers[rows].numpy(),
        relation=relations[rows].numpy(),
        score=scores[rows, entities].double().numpy(),
        crowd=crowd(scores, is_seen)[rows].numpy(),
        num_seen=is_seen.sum(1)[rows].numpy(),
        num_candidates=num_candidates(is_seen)[rows].numpy(),
        own=own_log_probabilities(scores, own)[rows, entities].double().exp().numpy(),
        place=place[rows, entities].numpy(),
        is_true=is_true[rows, entities].numpy(),
        weight=torch.where(at_rest, weights[rows] / share[rows], weights[rows]).numpy(),
    )
