"""Makes ``tests/fixtures/pykeen_ranks.json``: PyKEEN's filtered ranks of a seeded score table.

PyKEEN is no dependency of this project, so the script runs in an environment of its own:

    python -m venv /tmp/pykeen-venv
    /tmp/pykeen-venv/bin/pip install torch==2.13.0 pykeen==1.11.1
    /tmp/pykeen-venv/bin/python scripts/make_pykeen_ranks.py

Scores are small integers, so that ties abound and every number is exact in JSON. Tails and heads
are scored by different tables: (head, relation) -> tails and (tail, relation) -> heads. The same
versions give the same bytes.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.models.mocks import FixedModel
from pykeen.triples import KGInfo

OUTPUT = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "pykeen_ranks.json"
NUM_ENTITIES, NUM_RELATIONS, NUM_SCORES = 25, 3, 9
NUM_FACTS, NUM_TEST_FACTS = 300, 80
METRICS = {
    "mrr": "inverse_harmonic_mean_rank",
    "mr": "arithmetic_mean_rank",
    "hits@1": "hits_at_1",
    "hits@3": "hits_at_3",
    "hits@10": "hits_at_10",
}


class TableModel(FixedModel):
    """Looks scores up: ``tail_scores[h, r, t]`` and ``head_scores[t, r, h]``."""

    def __init__(self, tail_scores: torch.Tensor, head_scores: torch.Tensor) -> None:
        kg_info = KGInfo(
            num_entities=NUM_ENTITIES, num_relations=NUM_RELATIONS, create_inverse_triples=False
        )
        super().__init__(triples_factory=kg_info)
        self.tail_scores, self.head_scores = tail_scores.float(), head_scores.float()

    def score_t(self, hr_batch: torch.Tensor, **_: Any) -> torch.Tensor:
        """Returns a row of tail scores per (head, relation)."""
        return self.tail_scores[hr_batch[:, 0], hr_batch[:, 1]].clone()

    def score_h(self, rt_batch: torch.Tensor, **_: Any) -> torch.Tensor:
        """Returns a row of head scores per (relation, tail)."""
        return self.head_scores[rt_batch[:, 1], rt_batch[:, 0]].clone()


def make_record(seed: int) -> dict[str, Any]:
    """Draws scores and facts, has PyKEEN rank them, and returns everything."""
    generator = torch.Generator().manual_seed(seed)
    shape = (NUM_ENTITIES, NUM_RELATIONS, NUM_ENTITIES)
    tail_scores = torch.randint(NUM_SCORES, shape, generator=generator)
    head_scores = torch.randint(NUM_SCORES, shape, generator=generator)
    numbers = torch.randperm(tail_scores.numel(), generator=generator)[:NUM_FACTS]
    facts = torch.stack(torch.unravel_index(numbers, shape), 1)
    test, others = facts[:NUM_TEST_FACTS], facts[NUM_TEST_FACTS:]

    evaluator = RankBasedEvaluator(filtered=True, clear_on_finalize=False)
    results = evaluator.evaluate(
        TableModel(tail_scores, head_scores),
        mapped_triples=test,
        additional_filter_triples=others,
        batch_size=16,
        use_tqdm=False,
    )
    policies, sides = ("optimistic", "realistic", "pessimistic"), ("head", "tail", "both")
    ranks = {
        side: {
            policy: [float(r) for part in evaluator.ranks[side, policy] for r in part]
            for policy in policies
        }
        for side in ("head", "tail")
    }
    metrics = {
        side: {
            policy: {
                name: float(results.get_metric(f"{side}.{policy}.{theirs}"))
                for name, theirs in METRICS.items()
            }
            for policy in policies
        }
        for side in sides
    }
    return {
        "made_by": "scripts/make_pykeen_ranks.py",
        "seed": seed,
        "versions": {name: version(name) for name in ("pykeen", "torch", "numpy")},
        "tail_scores": tail_scores.tolist(),
        "head_scores": head_scores.tolist(),
        "test_facts": test.tolist(),
        "other_facts": others.tolist(),
        "ranks": ranks,
        "metrics": metrics,
    }


def main() -> None:
    """Writes the record."""
    parser = argparse.ArgumentParser(description="Makes tests/fixtures/pykeen_ranks.json.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    record = make_record(arguments.seed)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(f"{arguments.output}: {record['metrics']['both']['realistic']}")


if __name__ == "__main__":
    main()
