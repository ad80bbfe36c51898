"""From triples of one's own to answers, on a graph whose entities the model has never seen."""

import tempfile
from pathlib import Path

from knowformer import ModelConfig, Reasoner, RunConfig, TrainingConfig, train

# Smaller than the defaults, and one thread: tiny graphs gain nothing from more.
MODEL = ModelConfig(hidden_dim=16, num_layers=2)
CONFIG = RunConfig(model=MODEL, training=TrainingConfig(max_epochs=10), threads=1)


def shop(name: str, num_customers: int) -> list[str]:
    """Returns TSV lines: a customer buys a bike, a maker made it, the customer likes the maker."""
    lines: list[str] = []
    for i in range(num_customers):
        customer, bike, maker = f"{name}_customer_{i}", f"{name}_bike_{i}", f"{name}_maker_{i}"
        lines += [f"{customer}\tbought\t{bike}", f"{bike}\tmade_by\t{maker}"]
        lines += [f"{customer}\tlikes\t{maker}"]
    return lines


with tempfile.TemporaryDirectory() as folder:
    here, there = Path(folder, "here.tsv"), Path(folder, "there.tsv")
    here.write_text("\n".join(shop("here", 20)))
    there.write_text("\n".join(shop("there", 8)[:-1]))  # the last customer likes nobody yet
    train(here, f"{folder}/run", config=CONFIG)
    reasoner = Reasoner.from_pretrained(f"{folder}/run", graph=there)
    answers = reasoner.answer(head="there_customer_7", relation="likes", k=3, new_only=True)
    print(answers.question())
    for answer in answers.answers:
        print(f"  {answer.rank}. {answer.name:<20} {answer.probability:.3f}")
