"""Fit a RelationChoice to validation facts: which relation do they have, of all that they might?

To ask for every relation would take two passes of the model each. A few others than the true one
will do, drawn where the kinds of the two entities make them likely and corrected for it, so that
the fit is that of all relations (Ben-Akiva and Lerman 1985, section 9.3). The coefficients are
drawn towards their defaults, which hold where facts are few.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.relation_choice import (
    COEFFICIENTS,
    DEFAULTS,
    KINDS,
    RelationChoice,
    relation_shares,
)
from knowformer.calibration.relation_evidence import gather_evidence, kind_columns, on_graph
from knowformer.calibration.sample import ScoresQueries
from knowformer.data.dataset import Split
from knowformer.graph.roles import Roles, roles_of
from knowformer.queries.known_answers import KnownAnswers
from knowformer.scoring.batch_size import queries_at_once
from knowformer.seeding import derive_seed

FACTS = 128
FACTS_AT_ONCE = 16
DRAWS = 8  # of relations beside a fact's own; one that comes again is asked once
TEMPER = 0.3  # of what kinds say, that likely relations are not the only ones
UNIFORM = 0.1  # share of the draws that disregard kinds
RIDGE = 1.0
ROUNDS = 50  # of Newton's method; it takes about ten


def fit_relation_choice(
    scorer: ScoresQueries,
    calibrator: Calibrator,
    valid: Split,
    *,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
    is_enough: Callable[[], bool] | None = None,
) -> RelationChoice:
    """Fits the coefficients to some of a split's facts.

    Args:
        scorer: the model on the split's graph, which does not hold the split's facts.
        calibrator: the model's.
        valid: validation facts as training sees them.
        seed: root of the sampling.
        progress: called with facts done and facts in all.
        is_enough: asked before every few facts; True ends the sample.
    """
    graph = valid.graph
    if len(graph.relations) == 1:
        return RelationChoice()  # there is nothing to choose
    roles = roles_of(graph.adjacency)
    random = np.random.default_rng(derive_seed(seed, "relation_choice"))
    chosen = random.permutation(len(valid.facts))[:FACTS]
    facts = valid.facts[torch.from_numpy(chosen)]
    pairs = facts[:, [0, 2]]
    relations, given = _draw_relations(facts, relation_candidates(valid, facts), roles, random)

    columns: list[Float[np.ndarray, "f A C"]] = []
    for first in range(0, len(facts), FACTS_AT_ONCE):
        if is_enough is not None and is_enough():
            break
        some = slice(first, first + FACTS_AT_ONCE)
        evidence = gather_evidence(
            on_graph(scorer, graph),
            calibrator,
            roles,
            pairs[some],
            torch.from_numpy(relations[some]),
            batch_size=queries_at_once(len(graph.entities)),
        )
        columns.append(evidence.columns)
        if progress is not None:
            progress(min(some.stop, len(facts)), len(facts))
    if not columns:
        return RelationChoice()
    found = np.concatenate(columns)
    coefficients = fit_choice(found, given[: len(found)]).tolist()
    return RelationChoice(
        coefficients=dict(zip(COEFFICIENTS, coefficients, strict=True)), facts=len(found)
    )


def num_relation_questions(valid: Split) -> int:
    """Returns how many questions the fit to a split's facts asks, at most: two for a relation."""
    if len(valid.graph.relations) == 1:
        return 0
    return 2 * (1 + DRAWS) * min(FACTS, len(valid.facts))


def relation_candidates(split: Split, facts: Int[Tensor, "F 3"]) -> Bool[np.ndarray, "F N"]:
    """Returns which relations each fact's own competes with: those not known between its ends."""
    num_relations = len(split.graph.relations)
    known = KnownAnswers.of_split(split)
    heads, own, tails = facts.unbind(1)
    asked = torch.cartesian_prod(torch.arange(len(facts)), torch.arange(num_relations))
    number, relation = asked.unbind(1)
    is_known = known.holds(torch.stack([heads[number], relation, tails[number]], 1))
    allowed = ~is_known.view(len(facts), num_relations)
    allowed[torch.arange(len(facts)), own] = True
    return allowed.numpy()


def _draw_relations(
    facts: Int[Tensor, "F 3"],
    allowed: Bool[np.ndarray, "F N"],
    roles: Roles,
    random: np.random.Generator,
) -> tuple[Int[np.ndarray, "F A"], Float[np.ndarray, "F A"]]:
    """Returns each fact's own relation and others, and what corrects for how they were drawn.

    A relation that was drawn n times with chance q counts n / q times; -inf leaves one out that
    stands there already.
    """
    pairs, own = facts[:, [0, 2]], facts[:, 1].numpy()
    every = torch.arange(allowed.shape[1]).expand(allowed.shape)
    kinds = np.stack(kind_columns(roles, pairs, every), axis=-1) @ np.array(DEFAULTS[: len(KINDS)])
    uniform = allowed / allowed.sum(1, keepdims=True)
    chance = (1 - UNIFORM) * relation_shares(TEMPER * kinds, allowed) + UNIFORM * uniform
    relations = np.empty((len(facts), 1 + DRAWS), dtype=np.int64)
    given = np.full(relations.shape, -np.inf)
    for number, of_fact in enumerate(chance):
        drawn = random.choice(len(of_fact), size=DRAWS, p=of_fact / of_fact.sum())
        relations[number] = [own[number], *drawn]
        distinct, first, times = np.unique(relations[number], return_index=True, return_counts=True)
        given[number, first] = np.log(times / of_fact[distinct])
    return relations, given


def fit_choice(
    columns: Float[np.ndarray, "F A C"], given: Float[np.ndarray, "F A"]
) -> Float[np.ndarray, " C"]:
    """Fits P(first alternative) = softmax(columns @ coefficients + given) by Newton's method."""
    defaults = np.array(DEFAULTS)
    coefficients = defaults.copy()
    for _ in range(ROUNDS):
        p = relation_shares(columns @ coefficients + given, np.isfinite(given))
        mean = np.einsum("fa,fac->fc", p, columns)
        gradient = (columns[:, 0] - mean).sum(0) - RIDGE * (coefficients - defaults)
        spread = np.einsum("fa,fac,fad->cd", p, columns, columns) - mean.T @ mean
        step = np.linalg.solve(spread + RIDGE * np.eye(len(defaults)), gradient)
        coefficients = coefficients + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    return coefficients
