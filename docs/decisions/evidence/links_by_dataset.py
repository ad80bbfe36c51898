"""How often two entities of a fact are linked by another one, and what a run hides by default.

python docs/decisions/evidence/links_by_dataset.py [NAME or FILE ...]
"""

import sys

from knowformer.audit.links import num_linked, num_linked_twice
from knowformer.data import catalog
from knowformer.data.loading import load_dataset
from knowformer.errors import DataError
from knowformer.training.defaults import choose_epochs, choose_hidden_edges


def main() -> None:
    """Prints the shares of training and validation facts, and the defaults chosen by them."""
    at_hand = [name for name, entry in catalog.entries().items() if catalog.locate(entry)]
    for name in sys.argv[1:] or at_hand:
        try:
            splits = load_dataset(name).for_training()
        except DataError as error:  # such as a relation that training facts lack
            print(f"{name:16} {error}")
            continue
        facts, valid = splits.train.facts.numpy(), splits.valid
        size = len(splits.train.graph.entities)
        in_training = num_linked_twice(facts, size) / len(facts)
        held_out = num_linked(valid.facts.numpy(), valid.graph.facts.numpy(), size)
        print(
            f"{name:16} linked in training {in_training:.1%}, in validation "
            f"{held_out / max(1, len(valid.facts)):.1%}: hide {choose_hidden_edges(splits).edges}, "
            f"{choose_epochs(splits.train):g} epochs"
        )


if __name__ == "__main__":
    main()
