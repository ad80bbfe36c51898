from itertools import islice

import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.errors import NonFiniteLossError
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.system.workers import shared_workers
from knowformer.training.config import LossName, RunConfig
from knowformer.training.optimizer import build_optimizer
from knowformer.training.sampling.epochs import TrainingEpochs
from knowformer.training.sampling.visibility import see_views
from knowformer.training.settings_file import parse_config
from knowformer.training.step import TrainingStep
from knowformer.views.extractor import ViewExtractor
from knowformer.views.settings import ViewSettings

BATCH_SIZE = 8


def config_of(**training: object) -> RunConfig:
    model = {"hidden_dim": 8, "num_layers": 1, "num_query_key_hops": 1, "num_value_hops": 2}
    settings = {"model": model, "training": {"warmup_steps": 0, **training}}
    return parse_config(settings, where="test")


def step_of(ring: Dataset, config: RunConfig) -> TrainingStep:
    model = KnowFormer(config.model, 2 * len(ring.relations))
    initialize(model, generator=torch.Generator().manual_seed(0))
    optimizer = build_optimizer(model, config.training)
    return TrainingStep(model, optimizer, config, shared_workers(1), batch_size=BATCH_SIZE)


@pytest.fixture
def epochs(ring: Dataset) -> TrainingEpochs:
    split = ring.for_training().train
    return TrainingEpochs(split, targets="some", batch_size=BATCH_SIZE, partition_size=None)


def take(step: TrainingStep, epochs: TrainingEpochs, num_steps: int) -> list[float]:
    batches = epochs.batches(torch.Generator().manual_seed(0))
    return [
        step(step.see(*next(batches), number), step=number, progress=number / num_steps)
        for number in range(num_steps)
    ]


def flat(model: KnowFormer) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("loss", ["cross_entropy", "binary"])
def test_the_same_seed_and_steps_give_the_same_bits(
    ring: Dataset, epochs: TrainingEpochs, loss: LossName
) -> None:
    first, second = (step_of(ring, config_of(loss=loss, relation_swaps=0.5)) for _ in range(2))
    assert take(first, epochs, 3) == take(second, epochs, 3)
    assert torch.equal(flat(first.model), flat(second.model))


def test_randomness_depends_on_the_number_of_the_step(
    ring: Dataset, epochs: TrainingEpochs
) -> None:
    step = step_of(ring, config_of(edge_dropout=0.3))
    graph, batch = next(epochs.batches(torch.Generator().manual_seed(0)))
    losses = [
        step.differentiate(step.see(graph, batch, number), step=number) for number in (0, 1, 0)
    ]
    assert losses[0] == losses[2] != losses[1]


def test_the_learning_rate_follows_progress(ring: Dataset, epochs: TrainingEpochs) -> None:
    step = step_of(ring, config_of(schedule="cosine", learning_rate=0.01))
    graph, batch = next(epochs.batches(torch.Generator().manual_seed(0)))
    step(step.see(graph, batch, 0), step=0, progress=0.5)
    assert step.learning_rate == pytest.approx(0.005)


def test_gradients_are_replaced_not_added(ring: Dataset, epochs: TrainingEpochs) -> None:
    step = step_of(ring, config_of())
    graph, batch = next(epochs.batches(torch.Generator().manual_seed(0)))

    def gradients() -> list[torch.Tensor]:
        step.differentiate(step.see(graph, batch, 0), step=0)
        grads = [parameter.grad for parameter in step.model.parameters()]
        return [grad.clone() for grad in grads if grad is not None]

    assert all(map(torch.equal, gradients(), gradients()))


def test_without_averaging_the_model_is_its_own_moving_average(ring: Dataset) -> None:
    step = step_of(ring, config_of())
    assert step.ema is step.model


def test_the_moving_average_follows_the_weights(ring: Dataset, epochs: TrainingEpochs) -> None:
    step = step_of(ring, config_of(averaging=0.9))
    before = flat(step.ema)
    take(step, epochs, 1)
    # Decay is (1 + 0) / (10 + 0) at the first step, however slow the average is later.
    torch.testing.assert_close(flat(step.ema), before.lerp(flat(step.model), 0.9))


def test_a_loss_that_is_not_finite_leaves_the_weights_unchanged(
    ring: Dataset, epochs: TrainingEpochs
) -> None:
    step = step_of(ring, config_of())
    with torch.no_grad():
        step.model.encoder.query_relations.weight.fill_(torch.nan)
    before = flat(step.model)
    with pytest.raises(NonFiniteLossError, match="step 0"):
        take(step, epochs, 1)
    assert torch.equal(flat(step.model).nan_to_num(7.0), before.nan_to_num(7.0))


def test_in_views_the_same_seed_gives_the_same_bits(ring: Dataset, epochs: TrainingEpochs) -> None:
    config = config_of()
    config = config.model_copy(update={"model": config.model.model_copy(update={"view_size": 6})})
    first, second = (step_of(ring, config) for _ in range(2))
    losses = take(first, epochs, 3)
    assert losses == take(second, epochs, 3)
    assert torch.equal(flat(first.model), flat(second.model))
    assert max(losses) > 0


def test_a_view_of_everything_trains_as_the_whole_graph(ring: Dataset) -> None:
    split = ring.for_training().train
    # One query a batch: on the whole graph a batch hides the facts of all its queries.
    epochs = TrainingEpochs(split, targets="some", batch_size=1, partition_size=None)
    step = step_of(ring, config_of())
    settings = ViewSettings(size=len(split.graph.entities))
    extractor = ViewExtractor(split.graph.adjacency, split.graph.entity_keys, settings)
    for graph, batch in islice(epochs.batches(torch.Generator().manual_seed(0)), 4):
        random = torch.Generator()
        seen = see_views(extractor, graph, batch, hide="facts", edge_dropout=0.0, generator=random)
        assert seen.entities is not None
        losses = [step.differentiate(each, step=0) for each in (seen, step.see(graph, batch, 0))]
        assert losses[0] == losses[1]


def test_a_batch_whose_answers_nobody_sees_changes_nothing(
    ring: Dataset, epochs: TrainingEpochs
) -> None:
    step = step_of(ring, config_of())
    graph, batch = next(epochs.batches(torch.Generator().manual_seed(0)))
    nothing = batch.keep(
        torch.zeros(len(batch), dtype=torch.bool), torch.zeros_like(batch.rows) > 0
    )
    before = flat(step.model)
    assert step(step.see(graph, nothing, 0), step=0, progress=0.0) == 0.0
    assert torch.equal(flat(step.model), before)
