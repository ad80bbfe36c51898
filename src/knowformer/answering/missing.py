"""The most probable new facts of a relation, over the whole graph, in bounded memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.answering.engine import Engine
from knowformer.answering.results import MissingFact, MissingFacts
from knowformer.calibration.calibrator import Verdict
from knowformer.calibration.sample import Floats, Ints
from knowformer.errors import DataError
from knowformer.graph.inverse import inverse_of

Sweep = Literal["heads", "tails"]


@dataclass(frozen=True)
class _Best:
    """The best pairs so far, in no order."""

    given: Ints
    found: Ints
    score: Floats
    verdict: Verdict

    def joined(self, other: "_Best") -> "_Best":
        mine, theirs = self.verdict, other.verdict
        return _Best(
            np.concatenate([self.given, other.given]),
            np.concatenate([self.found, other.found]),
            np.concatenate([self.score, other.score]),
            Verdict(
                np.concatenate([mine.probability, theirs.probability]),
                np.concatenate([mine.log_odds, theirs.log_odds]),
            ),
        )

    def best(self, k: int) -> "_Best":
        at = self.verdict.order()[:k]
        return _Best(self.given[at], self.found[at], self.score[at], self.verdict[at])


def find_missing_facts(
    engine: Engine,
    relation: int,
    *,
    k: int,
    sweep: Sweep = "heads",
    every_entity: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> MissingFacts:
    """Asks every head (or tail) of a relation, and keeps the k most probable facts not known.

    Raises:
        DataError: no entity of the graph takes part in the relation.
    """
    asked = _entities_asked(engine, relation, sweep, every_entity)
    number = torch.tensor(relation)
    if sweep == "tails":
        number = inverse_of(number, len(engine.graph.relations))
    best: _Best | None = None
    num_candidates = done = 0
    for heads in asked.split(engine.batch_rows):
        batch = engine.score(heads, number.expand(len(heads)))
        allowed = batch.scores.masked_fill(batch.known, -torch.inf)
        top = allowed.topk(min(k, allowed.shape[1]), dim=1)
        verdict = engine.judge.judge(top.values, batch.context)
        finite = torch.isfinite(top.values).numpy()
        found = _Best(
            heads[:, None].expand_as(top.indices).numpy()[finite],
            top.indices.numpy()[finite],
            top.values.double().numpy()[finite],
            verdict[finite],
        )
        best = (found if best is None else best.joined(found)).best(k)
        num_candidates += int((~batch.known).sum())
        done += len(heads)
        if progress is not None:
            progress(done, len(asked))
    assert best is not None
    return _named(engine, relation, sweep, best, len(asked), num_candidates)


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


def _named(
    engine: Engine, relation: int, sweep: Sweep, best: _Best, asked: int, candidates: int
) -> MissingFacts:
    names, labels = engine.graph.entities.names, engine.labels.entities
    name = engine.graph.relations.names[relation]
    heads, tails = (best.given, best.found) if sweep == "heads" else (best.found, best.given)
    facts = [
        MissingFact(
            head=names[head],
            relation=name,
            tail=names[tail],
            rank=rank,
            score=float(best.score[rank - 1]),
            probability=float(best.verdict.probability[rank - 1]),
            head_label=labels.get(names[head]),
            tail_label=labels.get(names[tail]),
        )
        for rank, (head, tail) in enumerate(zip(heads, tails, strict=True), start=1)
    ]
    return MissingFacts(name, facts, asked, candidates, engine.judge.kind)
