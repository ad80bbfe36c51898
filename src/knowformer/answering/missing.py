"""The most probable new facts of a relation, over the whole graph, in bounded memory; in ids."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from knowformer.answering.engine import Engine
from knowformer.calibration.calibrator import Probabilities
from knowformer.choices import Sweep
from knowformer.errors import DataError
from knowformer.graph.inverse import inverse_of


@dataclass(frozen=True)
class MissingRanking:
    """New facts of a relation, most probable first, and how many candidates there were."""

    heads: Int[np.ndarray, " N"]
    tails: Int[np.ndarray, " N"]
    scores: Float[np.ndarray, " N"]
    probabilities: Float[np.ndarray, " N"]
    num_questions: int
    num_candidates: int


@dataclass(frozen=True)
class _Pairs:
    """Pairs of an entity that was asked about and a candidate for its question."""

    asked: Int[np.ndarray, " N"]
    candidate: Int[np.ndarray, " N"]
    score: Float[np.ndarray, " N"]
    probabilities: Probabilities

    def joined(self, other: "_Pairs") -> "_Pairs":
        mine, others = self.probabilities, other.probabilities
        return _Pairs(
            np.concatenate([self.asked, other.asked]),
            np.concatenate([self.candidate, other.candidate]),
            np.concatenate([self.score, other.score]),
            Probabilities(
                np.concatenate([mine.values, others.values]),
                np.concatenate([mine.log_odds, others.log_odds]),
            ),
        )

    def best(self, k: int) -> "_Pairs":
        at = self.probabilities.order()[:k]
        return _Pairs(self.asked[at], self.candidate[at], self.score[at], self.probabilities[at])


def rank_missing_facts(
    engine: Engine,
    relation: int,
    *,
    k: int,
    sweep: Sweep = "heads",
    every_entity: bool = False,
    among: tuple[int, ...] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MissingRanking:
    """Asks every head (or tail) of a relation, and keeps the k most probable facts not known.

    With ``among`` these entities alone, by their ids, may answer.

    Raises:
        DataError: no entity of the graph takes part in the relation.
    """
    asked = _entities_asked(engine, relation, sweep, every_entity)
    if sweep == "tails":
        relation = inverse_of(relation, len(engine.graph.relations))
    best: _Pairs | None = None
    num_candidates = done = 0
    for heads in asked.split(engine.batch_size):
        batch = engine.score(heads, torch.full_like(heads, relation), among=among)
        allowed = batch.allowed(new_only=True)
        top = allowed.topk(min(k, allowed.shape[1]), dim=1)
        probabilities = engine.calibrator.probabilities(top.values, batch.features)
        finite = torch.isfinite(top.values).numpy()
        pairs = _Pairs(
            heads[:, None].expand_as(top.indices).numpy()[finite],
            batch.scores.entities_at(top.indices).numpy()[finite],
            top.values.double().numpy()[finite],
            probabilities[finite],
        )
        best = (pairs if best is None else best.joined(pairs)).best(k)
        num_candidates += len(heads) * len(among or engine.graph.entities)
        num_candidates -= int(batch.num_known.sum())
        done += len(heads)
        if progress is not None:
            progress(done, len(asked))
    assert best is not None
    ends = (best.asked, best.candidate) if sweep == "heads" else (best.candidate, best.asked)
    return MissingRanking(*ends, best.score, best.probabilities.values, len(asked), num_candidates)


def _entities_asked(
    engine: Engine, relation: int, sweep: Sweep, every_entity: bool
) -> Int[Tensor, " Q"]:
    if every_entity:
        return torch.arange(len(engine.graph.entities))
    facts = engine.graph.facts
    column = 0 if sweep == "heads" else 2
    asked: Tensor = torch.unique(facts[facts[:, 1] == relation, column])
    if len(asked) == 0:
        raise DataError(
            f"Expected a relation that has facts in the graph, got "
            f"{engine.graph.relations.names[relation]!r}, which has none there. Ask about every "
            "entity instead: `every_entity=True`."
        )
    return asked
