"""The calibration sample: queries of a split and some of their candidates, with their truth.

The queries are pairs (h, r), both directions, whose head takes part in the relation, whether or
not a fact of the split is missing there: someone who asks does not know that either. The
candidates are the entities that are not known as answers. What the split holds out is true, all
else is false. Most queries miss nothing, so they are sampled apart from those that do, and
weighted back; likewise candidates that score low.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.calibration.features import QueryFeatures, query_features
from knowformer.data.dataset import Split
from knowformer.graph.inverse import num_with_inverses
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.scores import Scores
from knowformer.scoring.batch_size import queries_at_once
from knowformer.scoring.link import LinkFunction, log_probabilities
from knowformer.seeding import generator

QUERIES = 1000  # sampled of those that miss a fact, and as many of the others
MIN_QUERIES = 200  # of both, below which no shortage of time goes
BEST = 32  # candidates of a query that are all taken
OTHERS = 32  # taken of the rest, on average


@runtime_checkable
class ScoresQueries(Protocol):
    """What is needed of a scorer."""

    def score(self, heads: Int[Tensor, " B"], relations: Int[Tensor, " B"]) -> Scores:
        """Returns the scores of every query's candidates."""
        ...


@dataclass(frozen=True)
class CalibrationSample:
    """Candidates of many queries, one a row; weights make the sample stand for the whole."""

    query: Int[np.ndarray, " N"]
    relation: Int[np.ndarray, " N"]  # as asked: an inverse asks for heads
    score: Float[np.ndarray, " N"]
    competitors: Float[np.ndarray, " N"]  # this and the next two: see ``features.QueryFeatures``
    num_seen: Int[np.ndarray, " N"]
    num_candidates: Float[np.ndarray, " N"]
    model_probability: Float[np.ndarray, " N"]  # what the link function gives
    place: Int[np.ndarray, " N"]  # among the candidates of the query, 0 is the best
    is_true: Bool[np.ndarray, " N"]
    weight: Float[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, at: Bool[np.ndarray, " N"]) -> "CalibrationSample":
        return CalibrationSample(*(getattr(self, field.name)[at] for field in fields(self)))


def sample_candidates(
    scorer: ScoresQueries,
    split: Split,
    *,
    link: LinkFunction,
    seed: int,
    queries: int = QUERIES,
    progress: Callable[[int, int], None] | None = None,
    is_enough: Callable[[int], bool] | None = None,
) -> CalibrationSample:
    """Scores a seeded sample of a split's queries and returns candidates with their truth.

    Args:
        scorer: bound to the split's graph, which does not hold the split's facts.
        split: its facts are true; other known facts are no candidates.
        link: the model's link function.
        seed: root of the sampling.
        queries: at most as many that miss a fact, and as many that miss none.
        progress: called with queries done and queries in all.
        is_enough: told how many queries are scored; True ends the sample, unless they are too few.
    """
    graph = split.graph
    sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
    seen = KnownAnswers.of(graph)
    held_out, known = KnownAnswers(split.facts, **sizes), KnownAnswers.of_split(split)
    asked, is_missing, weights = _sample_queries(split, queries, seed)
    batches: list[CalibrationSample] = []
    first = 0
    for pairs in asked.split(queries_at_once(len(graph.entities))):
        heads, relations = pairs.unbind(1)
        scores = scorer.score(heads, relations)
        is_seen = scores.mask(*seen.lookup(heads, relations))
        is_true = scores.mask(*held_out.lookup(heads, relations)) & ~is_seen
        is_new = is_true | ~scores.mask(*known.lookup(heads, relations))
        numbers = torch.arange(first, first + len(pairs))
        batches.append(
            _take(
                scores.table,
                is_true=is_true,
                is_candidate=scores.is_candidate & ~is_seen & is_new,
                features=query_features(scores, is_seen, relations),
                link=link,
                numbers=numbers,
                weights=weights[numbers],
                random=generator(seed, "calibration", split.name, "candidates", first),
            )
        )
        first += len(pairs)
        if progress is not None:
            progress(first, len(asked))
        if first >= MIN_QUERIES and is_enough is not None and is_enough(first):
            break
    names = [field.name for field in fields(CalibrationSample)]
    sample = CalibrationSample(*(np.concatenate([getattr(b, n) for b in batches]) for n in names))
    return sample if first == len(asked) else _stand_for_all(sample, is_missing, first)


def _stand_for_all(
    sample: CalibrationSample, is_missing: Bool[Tensor, " Q"], num_scored: int
) -> CalibrationSample:
    """Returns a sample that ended early with weights that make up for the queries left out.

    The order of the queries is random, so the first ones of each kind are a sample of that kind.
    """
    factors = np.ones(num_scored)
    for kind in (is_missing, ~is_missing):
        here = kind[:num_scored].numpy()
        factors[here] = int(kind.sum()) / max(1, int(here.sum()))
    return replace(sample, weight=sample.weight * factors[sample.query])


def _sample_queries(
    split: Split, limit: int, seed: int
) -> tuple[Int[Tensor, "Q 2"], Bool[Tensor, " Q"], Float[Tensor, " Q"]]:
    """Returns queries (head, relation) in random order.

    With each, whether it misses a fact, and how many it stands for.
    """
    num_relations = len(split.graph.relations)
    width = num_with_inverses(num_relations)

    def keys(answers: KnownAnswers) -> Tensor:
        heads, relations = answers.queries().unbind(1)
        return heads * width + relations

    sizes = {"num_entities": len(split.graph.entities), "num_relations": num_relations}
    missing = keys(KnownAnswers(split.facts, **sizes))
    others = keys(KnownAnswers.of(split.graph))  # rising, as those that are missing are
    others = others[~torch.isin(others, missing)]
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
    is_missing = torch.arange(len(asked)) < len(chosen[0])
    return pairs[order], is_missing[order], torch.cat(weights)[order]


def num_questions(split: Split, *, queries: int = QUERIES) -> int:
    """Returns how many questions a sample of a split's queries asks, at most."""
    facts = len(split.facts)
    return min(queries, 2 * facts) + min(queries, 2 * (facts + len(split.graph.facts)))


def _take(
    scores: Float[Tensor, "B W"],
    *,
    is_true: Bool[Tensor, "B W"],
    is_candidate: Bool[Tensor, "B W"],
    features: QueryFeatures,
    link: LinkFunction,
    numbers: Int[Tensor, " B"],
    weights: Float[Tensor, " B"],
    random: torch.Generator,
) -> CalibrationSample:
    """Takes every true candidate, the best ones, and a few of the rest, weighted."""
    order = scores.masked_fill(~is_candidate, -torch.inf).argsort(
        dim=1, descending=True, stable=True
    )
    place = torch.empty_like(order).scatter_(
        1, order, torch.arange(scores.shape[1]).expand_as(order)
    )
    all_taken = is_candidate & (is_true | (place < BEST))
    rest = is_candidate & ~all_taken
    fraction = (OTHERS / rest.sum(1).clamp(min=1).double()).clamp(max=1.0)
    draw = torch.rand(scores.shape, generator=random, dtype=torch.double)
    taken = all_taken | (rest & (draw < fraction[:, None]))
    query, column = torch.nonzero(taken, as_tuple=True)
    score = scores[query, column].double().numpy()
    of = features.take(query.numpy())
    return CalibrationSample(
        query=numbers[query].numpy(),
        relation=of.relations,
        score=score,
        competitors=of.competitors,
        num_seen=of.num_seen,
        num_candidates=of.num_candidates,
        model_probability=np.exp(log_probabilities(score, of.log_total, link)),
        place=place[query, column].numpy(),
        is_true=is_true[query, column].numpy(),
        weight=torch.where(
            rest[query, column], weights[query] / fraction[query], weights[query]
        ).numpy(),
    )
