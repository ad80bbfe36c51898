"""How the mix of relations differs between the two graphs of each inductive data set.

python docs/decisions/evidence/relation_shift.py [NAME ...]
"""

import sys

import torch

from knowformer.data.dataset import Split
from knowformer.data.loading import load_dataset

NAMES = [f"{family}_v{n}" for family in ("fb15k-237", "nell-995", "wn18rr") for n in range(1, 5)]


def counts_of(split: Split) -> torch.Tensor:
    """Returns how many facts of each relation a split's graph has."""
    return torch.bincount(split.graph.facts[:, 1], minlength=len(split.graph.relations))


def main() -> None:
    """Prints half the sum of absolute differences: 0 for the same mix, 1 for none in common."""
    for name in sys.argv[1:] or NAMES:
        dataset = load_dataset(name)
        facts_trained, facts_asked = counts_of(dataset.train), counts_of(dataset.test)
        trained, asked = facts_trained / facts_trained.sum(), facts_asked / facts_asked.sum()
        top = int((asked - trained).argmax())
        rare = int((asked / trained.clamp(min=1e-9)).argmax())
        print(
            f"{name:13} differing {(trained - asked).abs().sum() / 2:.2f}, most of all "
            f"{dataset.relations.names[top]}: {trained[top]:.1%} -> {asked[top]:.1%}; "
            f"by its factor {dataset.relations.names[rare]}: "
            f"{facts_trained[rare]} -> {facts_asked[rare]} facts"
        )


if __name__ == "__main__":
    main()
