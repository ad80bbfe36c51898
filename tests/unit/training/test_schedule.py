from collections.abc import Iterator

import pytest

from knowformer.data.dataset import Dataset
from knowformer.training.budget import WRITING_SECONDS, Budget
from knowformer.training.checkpoint import Counters
from knowformer.training.clock import Clock
from knowformer.training.config import TrainingConfig
from knowformer.training.sampling.epochs import TrainingEpochs
from knowformer.training.schedule import Schedule


def schedule_of(
    counters: Counters | None = None,
    *,
    steps_per_epoch: int = 10,
    whole_graph_cost: float = 1.0,
    now: float = 0.0,
    **settings: float | None,
) -> Schedule:
    times: Iterator[float] = iter([0.0])
    config = TrainingConfig.model_validate(settings)
    return Schedule(
        config,
        counters or Counters(steps_per_epoch=steps_per_epoch),
        Budget(config.max_minutes, Clock(lambda: next(times, now))),
        steps_per_epoch=steps_per_epoch,
        whole_graph_cost=whole_graph_cost,
    )


def work(schedule: Schedule, num_steps: int) -> list[float]:
    return [schedule.work_done(step) for step in range(num_steps + 1)]


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("num_steps", [1, 7, 100])
@pytest.mark.parametrize("cost", [1.0, 4.0])
def test_work_rises_from_zero_to_one(fraction: float, num_steps: int, cost: float) -> None:
    schedule = schedule_of(
        max_epochs=1, steps_per_epoch=num_steps, whole_graph_cost=cost, whole_graph_share=fraction
    )
    done = work(schedule, num_steps)
    assert done[0] == 0.0
    assert done[-1] == 1.0
    assert done == sorted(done)
    if cost == 1.0:
        assert done == [step / num_steps for step in range(num_steps + 1)]


def test_a_step_on_the_whole_graph_counts_as_much_as_it_costs() -> None:
    schedule = schedule_of(
        max_epochs=1, steps_per_epoch=100, whole_graph_cost=4.0, whole_graph_share=0.5
    )
    done = work(schedule, 100)
    assert done[80] == pytest.approx(0.5)  # 80 steps of cost 1, 20 of cost 4
    assert done[90] == pytest.approx(0.75)
    assert schedule.mean_step_cost() == pytest.approx(0.8 * 1 + 0.2 * 4)
    assert schedule_of(whole_graph_cost=4.0).mean_step_cost() == 1.0
    assert schedule_of(whole_graph_share=0.5).mean_step_cost() == 1.0


def test_progress_is_by_work_or_by_minutes_whichever_is_further() -> None:
    half = Counters(step=10)
    assert schedule_of(half, max_epochs=2).progress() == 0.5
    assert schedule_of(half, max_epochs=2, max_minutes=10, now=60.0).progress() == 0.5
    now = 0.75 * (600.0 - WRITING_SECONDS)
    assert schedule_of(half, max_epochs=2, max_minutes=10, now=now).progress() == 0.75
    assert schedule_of(half, max_epochs=2, max_minutes=10, now=900.0).progress() == 1.0


@pytest.mark.parametrize(
    ("counters", "is_over"),
    [
        (Counters(step=19, validations_since_record=2), False),
        (Counters(step=20), True),
        (Counters(step=3, validations_since_record=3), True),
        (Counters(step=3, finished=True), True),
    ],
    ids=["under way", "work", "patience", "finished"],
)
def test_a_run_is_over_by_work_or_patience(counters: Counters, is_over: bool) -> None:
    assert schedule_of(counters, max_epochs=2, patience=3).is_over() == is_over


def test_minutes_end_a_run() -> None:
    end = 60.0 - WRITING_SECONDS
    assert not schedule_of(max_minutes=1, now=end - 1.0).is_over()
    assert schedule_of(max_minutes=1, now=end).is_over()


def test_a_part_that_was_added_goes_from_zero_to_one() -> None:
    counters = Counters(step=20, part_step=20, part_seconds=30.0)
    schedule = schedule_of(counters, max_epochs=4, validations_per_epoch=2)
    assert [schedule.work_done(step) for step in (20, 30, 40)] == [0.0, 0.5, 1.0]
    assert not schedule.is_over()
    assert validated_steps(40, schedule, counters) == [25, 30, 35, 40]
    counters.step = 20
    end = 120.0 - WRITING_SECONDS
    halfway = schedule_of(counters, max_epochs=99, max_minutes=2, now=(30.0 + end) / 2)
    assert halfway.progress() == pytest.approx(0.5)
    assert halfway.seconds_left() == pytest.approx(120.0 - (30.0 + end) / 2)
    assert schedule_of(counters, max_epochs=2).is_over()  # nothing was added


def validated_steps(num_steps: int, schedule: Schedule, counters: Counters) -> list[int]:
    due: list[int] = []
    for step in range(counters.part_step + 1, num_steps + 1):
        counters.step = step
        if schedule.is_validation_due():
            due.append(step)
    return due


def test_validations_are_evenly_spaced_over_the_work() -> None:
    counters = Counters()
    schedule = schedule_of(counters, max_epochs=2, validations_per_epoch=2)
    assert validated_steps(20, schedule, counters) == [5, 10, 15, 20]
    schedule = schedule_of(
        counters,
        max_epochs=2,
        validations_per_epoch=2,
        steps_per_epoch=25,
        whole_graph_cost=4.0,
        whole_graph_share=0.5,
    )
    assert validated_steps(50, schedule, counters) == [20, 40, 45, 50]


@pytest.mark.parametrize(("step", "epoch"), [(0, 0), (1, 0), (10, 0), (11, 1), (25, 2)])
def test_epochs_are_counted_from_zero_in_steps(step: int, epoch: int) -> None:
    assert schedule_of(Counters(step=step, steps_per_epoch=10)).epoch == epoch


def epochs_of(ring: Dataset) -> TrainingEpochs:
    return TrainingEpochs(ring.train, targets="one", batch_size=4, partition_size=6)


def walk(ring: Dataset, counters: Counters, *, stop_at: int | None = None) -> list[str]:
    """Walks through a run, or to some step, and returns the facts of each batch."""
    epochs = epochs_of(ring)
    schedule = schedule_of(
        counters,
        max_epochs=3,
        steps_per_epoch=len(epochs),
        whole_graph_cost=epochs.whole_graph_cost,
        whole_graph_share=0.4,
    )
    walked: list[str] = []
    for graph, batch in schedule.steps(epochs, lambda batches: batches, seed=0):
        kind = "whole" if graph is epochs.whole else "partition"
        walked.append(f"{kind} {graph.entity_keys.tolist()} {batch.facts.tolist()}")
        schedule.advance()
        if counters.step == stop_at:
            break
    return walked


def test_a_run_on_partitions_ends_on_the_whole_graph(ring: Dataset) -> None:
    counters = Counters()
    walked = walk(ring, counters)
    assert counters.step == len(walked) == 3 * len(epochs_of(ring))
    kinds = [text.split()[0] for text in walked]
    first = kinds.index("whole")
    assert first > 0
    assert set(kinds[first:]) == {"whole"}


def test_a_run_that_is_resumed_at_any_step_goes_on_with_the_same_batches(ring: Dataset) -> None:
    undisturbed = walk(ring, Counters())
    for stop_at in range(1, len(undisturbed)):
        counters = Counters()
        walk(ring, counters, stop_at=stop_at)
        assert walk(ring, counters) == undisturbed[stop_at:], stop_at
