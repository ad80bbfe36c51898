"""Compares ways to take attention away: python attention_removal.py RUN [PREDICTIONS].

Test facts are explained. Ten entities are named by their influence through the answer's own row of
the attention, or through all rows; then they are not attended to by the answer alone, or by no
entity. Printed are means over predictions of the log-odds lost, beside random entities as near.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from knowformer.explanation.check.benchmark import choose_facts
from knowformer.explanation.check.faithfulness import RandomEvidence, Removal, score_margin
from knowformer.explanation.find.attention_rows import largest
from knowformer.explanation.find.evidence import NUM_PROTOTYPES, AnswerEvidence, EvidenceFinder
from knowformer.explanation.find.prediction import Prediction
from knowformer.kernels.interface import Backend
from knowformer.model.run import Probe
from knowformer.reasoner import Reasoner


class OwnRow:
    """Kernels whose weights on attended entities count in the answer's row alone."""

    def __init__(self, kernels: Backend, answer: int) -> None:
        self._kernels = kernels
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        """All other operators are those of the kernels."""
        return getattr(self._kernels, name)

    def attend(self, *states: Any, attended: Tensor | None = None, **how: Any) -> Tensor:
        """See ``Backend.attend``."""
        plain = self._kernels.attend(*states, **how)
        weighed = self._kernels.attend(*states, **how, attended=attended)
        is_answer = torch.arange(len(plain)) == self._answer
        return torch.where(is_answer[:, None], weighed, plain)


class OwnRowRemoval:
    """Removes entities from the answer's row, or names those that matter most there."""

    def __init__(self, finder: EvidenceFinder, evidence: AnswerEvidence) -> None:
        self._prediction = prediction = evidence.placed
        prepared = finder.tracer._prepare(evidence.prediction, evidence.graph)
        self._prepared = replace(prepared, backend=OwnRow(prepared.backend, prediction.answer))

    def without(self, entities: Sequence[int]) -> float:
        """Returns the log-odds of an answer that does not attend to these entities."""
        return self._log_odds(self._weights(entities)).item()

    def name(self, count: int) -> list[int]:
        """Returns the entities with the largest influence through the answer's row."""
        weights = self._weights([]).requires_grad_()
        (influence,) = torch.autograd.grad(self._log_odds(weights), weights)
        return largest(influence, count, besides=self._prediction.answer, floor=0.0)

    def _weights(self, entities: Sequence[int]) -> Tensor:
        weights = torch.ones(len(self._prediction.competitors))
        weights[list(entities)] = 0.0
        weights[self._prediction.answer] = 1.0
        return weights

    def _log_odds(self, weights: Tensor) -> Tensor:
        of_model = self._prepared.weights
        of_layer = weights[:, None].expand(-1, of_model.num_heads)
        probe = Probe(attended=[of_layer] * len(of_model.layers))
        return self._prediction.log_odds(self._prepared.run(probe))


def losses(finder: EvidenceFinder, prediction: Prediction) -> dict[str, float]:
    """Returns the log-odds that an answer loses, by who is removed from what."""
    evidence = finder.find(prediction)
    before = score_margin(evidence.trace.scores, prediction).log_odds
    own_row = OwnRowRemoval(finder, evidence)
    all_rows = Removal(finder, evidence)
    named = {"own row": own_row.name(NUM_PROTOTYPES), "all rows": evidence.prototypes}
    random = np.random.default_rng([prediction.head, prediction.relation, prediction.answer])
    others = RandomEvidence.of_entities(evidence.graph, evidence.placed)
    removed = named | {f"random for {n}": others.draw(e, random) for n, e in named.items()}
    removed["everyone"] = list(range(evidence.graph.num_entities))
    values = {"named in both ways": float(len(set(named["own row"]) & set(named["all rows"])))}
    for name, entities in removed.items():
        values[f"{name:20s} from own row"] = before - own_row.without(entities)
        after = all_rows.without_attending(entities).log_odds
        values[f"{name:20s} from all rows"] = before - after
    return values


def main(run: str, count: int = 60) -> None:
    """Explains test facts of a run, and takes attention away in both ways."""
    reasoner = Reasoner.from_pretrained(run, threads=1)
    split, seed = reasoner.dataset.test, reasoner.config.seed
    finder = EvidenceFinder.on_split(reasoner.model, split, seed=seed)
    results: defaultdict[str, list[float]] = defaultdict(list)
    for fact in choose_facts(split.facts, len(split.graph.relations), count, seed=seed).tolist():
        for name, value in losses(finder, finder.prediction(*fact)).items():
            results[name].append(value)
    for name, values in results.items():
        print(f"{name:36s} {np.mean(values):8.4f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
