"""Compares ways to take attention away: python attention_removal.py RUN [PREDICTIONS].

Test facts are explained. Ten entities are named by their influence through the answer's own row of
the attention, or through all rows; then they are not attended to by the answer alone, or by no
entity. Printed are means over predictions of the log-odds lost, beside random entities as near.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from knowformer.explanation.check.benchmark import _choose
from knowformer.explanation.check.faithfulness import RandomEvidence, Removal, standing
from knowformer.explanation.find.attention_rows import gather, largest
from knowformer.explanation.find.evidence import NUM_PROTOTYPES, EvidenceFinder
from knowformer.explanation.find.tracing import Prediction, _TracingBackend
from knowformer.kernels.interface import Edges
from knowformer.reasoner import Reasoner


class OwnRow(_TracingBackend):
    """Weights on attended entities count in the answer's row alone."""

    def __init__(self, kernels: Any, answer: int, attended: Tensor) -> None:
        super().__init__(kernels, answer)
        self._weights = attended

    def attend(self, states: Tensor, keys: Tensor, values: Tensor, weights: Any, **how: Any):
        """See ``Backend.attend``."""
        result = self._kernels.attend(states, keys, values, weights, **how)
        attended = self._weights.expand(how["num_heads"], -1)
        gathered = gather(keys, values, attended, weights)
        at = slice(self._answer, self._answer + 1)
        row = self._kernels.finish_layer(states[:, at], gathered[:, at], weights, dropout=None)
        return torch.cat([result[:, : at.start], row, result[:, at.stop :]], 1)


class OwnRowRemoval:
    """Removes entities from the answer's row, or names those that matter most there."""

    def __init__(self, finder: EvidenceFinder, prediction: Prediction, edges: Edges) -> None:
        self._prediction = prediction
        self._kernels = finder.tracer.model.backend
        self._prepared = finder.tracer._prepare(prediction, edges)

    def without(self, entities: Sequence[int]) -> float:
        """Returns the log-odds of an answer that does not attend to these entities."""
        return self._log_odds(self._weights(entities)).item()

    def name(self, count: int) -> list[int]:
        """Returns the entities with the largest influence through the answer's row."""
        weights = self._weights([]).requires_grad_()
        (influence,) = torch.autograd.grad(self._log_odds(weights), weights)
        return largest(influence, count, besides=self._prediction.answer, floor=0.0)

    def _weights(self, entities: Sequence[int]) -> Tensor:
        weights = torch.ones(len(self._prediction.rivals))
        weights[list(entities)] = 0.0
        weights[self._prediction.answer] = 1.0
        return weights

    def _log_odds(self, weights: Tensor) -> Tensor:
        backend = OwnRow(self._kernels, self._prediction.answer, weights)
        return self._prediction.log_odds(self._prepared.run(backend))


def losses(finder: EvidenceFinder, prediction: Prediction) -> dict[str, float]:
    """Returns the log-odds that an answer loses, by who is removed from what."""
    evidence = finder.find(prediction)
    before = standing(evidence.trace.scores, prediction).log_odds
    own_row = OwnRowRemoval(finder, prediction, evidence.graph.edges)
    all_rows = Removal(finder.tracer, evidence.graph, prediction)
    named = {"own row": own_row.name(NUM_PROTOTYPES), "all rows": evidence.prototypes}
    random = np.random.default_rng([prediction.head, prediction.relation, prediction.answer])
    others = RandomEvidence.of_entities(evidence.graph, prediction)
    removed = named | {f"random for {n}": others.draw(e, random) for n, e in named.items()}
    removed["everyone"] = list(range(len(prediction.rivals)))
    found = {"named in both ways": float(len(set(named["own row"]) & set(named["all rows"])))}
    for name, entities in removed.items():
        found[f"{name:20s} from own row"] = before - own_row.without(entities)
        after = all_rows.without_attending(entities).log_odds
        found[f"{name:20s} from all rows"] = before - after
    return found


def main(run: str, count: int = 60) -> None:
    """Explains test facts of a run, and takes attention away in both ways."""
    reasoner = Reasoner.from_pretrained(run, threads=1)
    split, seed = reasoner.dataset.test, reasoner.config.seed
    finder = EvidenceFinder(reasoner.model, split.graph, split.known, seed=seed)
    rows: defaultdict[str, list[float]] = defaultdict(list)
    for fact in _choose(split.facts, len(split.graph.relations), count, seed).tolist():
        for name, value in losses(finder, finder.prediction(*fact)).items():
            rows[name].append(value)
    for name, values in rows.items():
        print(f"{name:36s} {np.mean(values):8.4f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
