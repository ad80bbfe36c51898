"""Threads change the speed of training and scoring, and not a bit of the result."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import torch
from torch import Tensor

from knowformer import ModelConfig, Reasoner, RunConfig, TrainingConfig, train
from knowformer.data.dataset import Dataset, Split, TrainingSplits
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.micro_batches import micro_batch_size
from knowformer.scoring.scorer import Scorer
from knowformer.training.config import LossName
from knowformer.training.loop import Trainer
from knowformer.training.sampling.visibility import SeenBatch

MODEL = ModelConfig(
    hidden_dim=16, num_heads=4, num_layers=2, num_query_key_hops=1, num_value_hops=2
)
BATCH_SIZE = 32
CALLERS = 4


class WatchedTrainer(Trainer):
    """Keeps the loss of every step."""

    losses: list[float]

    def step(self, seen: SeenBatch) -> float:
        loss = super().step(seen)
        self.losses.append(loss)
        return loss


@pytest.fixture(scope="module")
def graph(random_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    """Large enough that a batch is cut into more micro-batches than there are threads."""
    made = random_graph(num_entities=2000, num_facts=3000)
    assert micro_batch_size(BATCH_SIZE, len(made.entities), MODEL.hidden_dim) <= BATCH_SIZE // 4
    return made


@pytest.fixture(scope="module")
def model(graph: KnowledgeGraph) -> KnowFormer:
    made = KnowFormer(MODEL, 2 * len(graph.relations), backend="cpu")
    assert made.is_batch_invariant  # on fused kernels
    initialize(made, generator=torch.Generator().manual_seed(0))
    return made


def trained(
    graph: KnowledgeGraph, loss: LossName, threads: int, folder: Path
) -> tuple[list[float], dict[str, Tensor]]:
    """Trains five steps and validates once."""
    training = TrainingConfig(
        loss=loss, batch_size=BATCH_SIZE, max_epochs=0.025, num_negatives=16, edge_dropout=0.1
    )
    config = RunConfig(model=MODEL, training=training, threads=threads, backend="cpu")
    splits = TrainingSplits(
        train=Split("train", graph, graph.facts, graph.facts),
        valid=Split("valid", graph, graph.facts[:16], graph.facts),
    )
    folder.mkdir()
    trainer = WatchedTrainer(splits, config, folder)
    trainer.losses = []
    trainer.run()
    return trainer.losses, trainer.model.state_dict()


@pytest.mark.parametrize("loss", ["cross_entropy", "binary"])
def test_training_has_equal_bits_on_any_number_of_threads(
    graph: KnowledgeGraph, loss: LossName, tmp_path: Path
) -> None:
    losses, weights = trained(graph, loss, 1, tmp_path / "1")
    assert len(losses) >= 4
    for threads in (2, 3):
        torch.set_num_threads(threads)  # torch's own threads have no say either
        other_losses, other_weights = trained(graph, loss, threads, tmp_path / str(threads))
        assert other_losses == losses
        assert other_weights.keys() == weights.keys()
        for name, value in weights.items():
            assert torch.equal(other_weights[name], value), name


def queries(graph: KnowledgeGraph, seed: int, count: int = 48) -> tuple[Tensor, Tensor]:
    """Some relations get more queries than share work, and some a single one."""
    draw = torch.Generator().manual_seed(seed)
    heads = torch.randint(len(graph.entities), (count,), generator=draw)
    relations = torch.randint(2 * len(graph.relations), (count,), generator=draw)
    relations[: count // 2] = seed % (2 * len(graph.relations))
    return heads, relations


def test_scores_have_equal_bits_on_any_number_of_threads(
    graph: KnowledgeGraph, model: KnowFormer
) -> None:
    asked = queries(graph, 0)
    scores = Scorer(model, graph, seed=0, threads=1).score(*asked).dense()
    for threads in (2, 3):
        torch.set_num_threads(threads)
        assert torch.equal(
            Scorer(model, graph, seed=0, threads=threads).score(*asked).dense(), scores
        )


def test_callers_of_one_scorer_at_the_same_time_get_the_bits_of_one_after_the_other(
    graph: KnowledgeGraph, model: KnowFormer
) -> None:
    asked = [queries(graph, seed) for seed in range(CALLERS)]
    alone = Scorer(model, graph, seed=0, threads=1)
    expected = [alone.score(*batch).dense() for batch in asked]
    scorer, start = Scorer(model, graph, seed=0, threads=2), Barrier(CALLERS)

    def call(batch: tuple[Tensor, Tensor]) -> Tensor:
        start.wait()
        return scorer.score(*batch).dense()

    with ThreadPoolExecutor(CALLERS) as callers:
        for _ in range(2):
            for scores, own in zip(callers.map(call, asked), expected, strict=True):
                assert torch.equal(scores, own)


def test_callers_of_one_reasoner_at_the_same_time_get_the_answers_of_one_after_the_other(
    ring: Dataset, tmp_path: Path
) -> None:
    training = TrainingConfig(max_epochs=0.1)
    made = train(ring, tmp_path / "run", config=RunConfig(model=MODEL, training=training))
    entities = list(ring.train.graph.entities)
    questions = [
        *({"head": name, "relation": "skip"} for name in entities[:6]),
        *({"relation": "next", "tail": name} for name in entities[:6]),
        *({"head": name, "tail": entities[0]} for name in entities[1:5]),
    ]
    expected = [made.answer(**question, k=16) for question in questions]
    fresh = Reasoner.from_pretrained(tmp_path / "run", threads=2)  # it has kept no answer yet
    with ThreadPoolExecutor(CALLERS) as callers:
        answers = list(callers.map(lambda question: fresh.answer(**question, k=16), questions))
    assert answers == expected
