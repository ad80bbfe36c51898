"""How the mix of relations differs between the two graphs of each inductive data set.

python docs/decisions/evidence/relation_shift.py [NAME ...]
"""

import sys

import torch

from knowformer.graph.dataset import Split, load_dataset

NAMES = [f"{family}_v{n}" for family in ("fb15k-237", "nell-995", "wn18rr") for n in range(1, 5)]


def shares(split: Split) -> torch.Tensor:
    """Returns the share of each relation among the facts of a split's graph."""
    counts = torch.bincount(split.graph.facts[:, 1], minlength=len(split.graph.relations))
    return counts / counts.sum()


def main() -> None:
    """Prints half the sum of absolute differences: 0 for the same mix, 1 for none in common."""
    for name in sys.argv[1:] or NAMES:
        dataset = load_dataset(name)
        trained, asked = shares(dataset.train), shares(dataset.test)
        top = int((asked - trained).argmax())
        print(
            f"{name:13} differing {(trained - asked).abs().sum() / 2:.2f}, most of all "
            f"{dataset.relations.names[top]}: {trained[top]:.1%} -> {asked[top]:.1%}"
        )


if __name__ == "__main__":
    main()
