"""Rank the relation of held-out facts, (head, ?, tail), among those not known of the pair."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.relation_choice import RelationChoice
from knowformer.calibration.relation_evidence import gather_evidence, on_graph
from knowformer.calibration.relation_fit import relation_candidates
from knowformer.calibration.sample import ScoresQueries
from knowformer.data.dataset import Split
from knowformer.evaluation.metrics import rank_metrics
from knowformer.graph.roles import roles_of
from knowformer.scoring.batch_size import queries_at_once
from knowformer.seeding import generator


def rank_relations(
    scorer: ScoresQueries,
    split: Split,
    calibrator: Calibrator,
    num_facts: int,
    *,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Asks for the relation of some facts of a split.

    Args:
        scorer: the model on the split's graph.
        split: gives the facts, drawn by the seed, and what is known.
        calibrator: the model's.
        num_facts: how many facts; all if there are fewer.
        seed: of the draw.
        progress: called with queries done and queries in all.

    Returns:
        The number of facts, and realistic metrics by all evidence (``both``), by what entities of
        these kinds have (``kinds``) and by the probability of the tail alone (``model``).
    """
    order = torch.randperm(len(split.facts), generator=generator(seed, "relation_facts"))
    facts = split.facts[order[:num_facts]]
    num_relations = len(split.graph.relations)
    evidence = gather_evidence(
        on_graph(scorer, split.graph),
        calibrator,
        roles_of(split.graph.adjacency),
        facts[:, [0, 2]],
        torch.arange(num_relations).expand(len(facts), -1),
        batch_size=queries_at_once(len(split.graph.entities)),
        progress=progress,
    )
    kinds = RelationChoice().of_kinds(evidence.columns)
    scores = {
        "both": calibrator.relation_choice.scores(evidence.columns),
        "kinds": kinds,
        "model": evidence.probabilities,
    }
    allowed = relation_candidates(split, facts)
    return {
        "num_facts": len(facts),
        **{name: rank_metrics(_ranks(some, allowed, facts)) for name, some in scores.items()},
    }


def _ranks(
    scores: Float[np.ndarray, "F N"], allowed: Bool[np.ndarray, "F N"], facts: Int[Tensor, "F 3"]
) -> Float[Tensor, " F"]:
    """Returns realistic ranks of each fact's own relation."""
    own = np.take_along_axis(scores, facts[:, 1:2].numpy(), 1)
    higher = (allowed & (scores > own)).sum(1)
    tied = (allowed & (scores == own)).sum(1) - 1
    return torch.from_numpy(1 + higher + tied / 2)
