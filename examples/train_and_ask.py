"""Train a small model on an embedded graph, evaluate it and ask it three questions."""

import tempfile

from knowformer import Answers, ModelConfig, RunConfig, TrainingConfig, train

# Smaller than the defaults, and one thread: tiny graphs gain nothing from more.
CONFIG = RunConfig(
    model=ModelConfig(hidden_dim=16, num_layers=2, num_query_key_hops=1, num_value_hops=2),
    training=TrainingConfig(max_epochs=2),
    threads=1,
)


def show(answers: Answers) -> None:
    """Prints a question and its best answers."""
    print(answers.question())
    for answer in answers.answers:
        known = "known" if answer.known else "new"
        print(f"  {answer.rank}. {answer.name:<18} {answer.probability:.3f} {known}")


def main() -> None:
    """Trains, evaluates and asks."""
    with tempfile.TemporaryDirectory() as folder:
        reasoner = train("nations", f"{folder}/run", config=CONFIG)
        report = reasoner.evaluate("test")
        print(f"test MRR {report.mrr:.3f}, hits@10 {report.realistic['hits@10']:.3f}")
        show(reasoner.answer(head="brazil", relation="embassy", k=3, new_only=True))
        show(reasoner.answer(relation="embassy", tail="cuba", k=3))
        show(reasoner.answer(head="usa", tail="uk", k=3))


if __name__ == "__main__":
    main()
