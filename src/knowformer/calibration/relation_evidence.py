"""Evidence for every relation between two entities, on one scale for all relations.

The model scores the tail for (h, r, ?) and the head for (?, r, t); either says how well the pair
fits the relation, not whether entities of these kinds have it. That the graph says: how often h,
and entities like it, are heads of r, and t, and those like it, are tails.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.features import QueryFeatures, query_features
from knowformer.calibration.sample import ScoresQueries
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.roles import Roles
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.scores import Scores

QUERIES = 32  # passes between two reports of progress

Progress = Callable[[int, int], None]
ScoreQueries = Callable[[Int[Tensor, " B"], Int[Tensor, " B"]], tuple[Scores, QueryFeatures]]


@dataclass(frozen=True)
class RelationEvidence:
    """What speaks for each of some relations between the entities of each of some pairs."""

    columns: Float[np.ndarray, "Q A 5"]
    """Logarithms, in the order of ``relation_choice.COEFFICIENTS``."""
    probabilities: Float[np.ndarray, "Q A"]
    """Of each fact, as the answer to (head, relation, ?)."""


def gather_evidence(
    score: ScoreQueries,
    calibrator: Calibrator,
    roles: Roles,
    pairs: Int[Tensor, "Q 2"],
    relations: Int[Tensor, "Q A"],
    *,
    batch_size: int = QUERIES,
    progress: Progress | None = None,
) -> RelationEvidence:
    """Asks the model for each pair and relation in both directions.

    Pairs that share an entity share the passes of the model that start there.

    Args:
        score: the model on a graph.
        calibrator: makes probabilities of scores.
        roles: of the same graph.
        pairs: heads and tails.
        relations: of each pair, those to compare.
        batch_size: queries that are scored at once, at most.
        progress: called with queries done and queries in all.
    """
    num_relations = roles.num_roles // 2
    heads, tails = (column[:, None].expand_as(relations).flatten() for column in pairs.unbind(1))
    forward = relations.flatten()
    backward = inverse_of(forward, num_relations)
    asked = torch.stack([torch.cat([forward, backward]), torch.cat([heads, tails])], 1)
    answers = torch.cat([tails, heads])
    queries: Tensor
    queries, query_of = torch.unique(asked, dim=0, return_inverse=True)
    values, log_odds = np.zeros(len(asked)), np.zeros(len(asked))
    for first in range(0, len(queries), min(batch_size, QUERIES)):
        batch = queries[first : first + min(batch_size, QUERIES)]
        scores, features = score(batch[:, 1], batch[:, 0])
        at = ((query_of >= first) & (query_of < first + len(batch))).nonzero().squeeze(1)
        query = query_of[at] - first
        of_answers = scores.at(query, answers[at])
        found = calibrator.probabilities(of_answers[:, None], features.take(query.numpy()))
        values[at.numpy()], log_odds[at.numpy()] = found.values[:, 0], found.log_odds[:, 0]
        if progress is not None:
            progress(first + len(batch), len(queries))
    by_tail, by_head = log_odds.reshape(2, *relations.shape)
    columns = [*kind_columns(roles, pairs, relations), by_tail, by_head]
    return RelationEvidence(np.stack(columns, axis=-1), values.reshape(2, *relations.shape)[0])


def on_graph(scorer: ScoresQueries, graph: KnowledgeGraph) -> ScoreQueries:
    """Returns a scorer's scores with what calibration compares them with."""
    seen = KnownAnswers.of(graph)

    def score(heads: Tensor, relations: Tensor) -> tuple[Scores, QueryFeatures]:
        scores = scorer.score(heads, relations)
        is_seen = scores.mask(*seen.lookup(heads, relations))
        return scores, query_features(scores, is_seen, relations)

    return score


def num_queries(pairs: Int[Tensor, "Q 2"], num_relations: int) -> int:
    """Returns how many passes of the model it takes to compare all relations of these pairs."""
    return num_relations * sum(len(torch.unique(column)) for column in pairs.unbind(1))


def kind_columns(
    roles: Roles, pairs: Int[Tensor, "Q 2"], relations: Int[Tensor, "Q A"]
) -> list[Float[np.ndarray, "Q A"]]:
    """Returns the log-shares of the relations in all facts, and in those of head and tail."""
    of_head = np.stack([roles.log_share(head) for head in pairs[:, 0].tolist()])
    of_tail = np.stack([roles.log_share(tail, backwards=True) for tail in pairs[:, 1].tolist()])
    at = relations.numpy()
    of_all = np.broadcast_to(roles.log_prior, of_head.shape)
    return [np.take_along_axis(shares, at, 1) for shares in (of_all, of_head, of_tail)]
