import math

import pytest

from knowformer.training.budget import (
    CALIBRATION_SHARE,
    FITTING_SECONDS,
    MIN_VALID_FACTS,
    UNSORTED_COST,
    WRITING_SECONDS,
    Budget,
)
from knowformer.training.clock import Clock


class Now:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def budget(self, minutes: float | None, *, questions_after: int = 0) -> Budget:
        clock = Clock(lambda: self.seconds)
        return Budget(minutes, clock, questions_after=questions_after)


def test_without_minutes_nothing_ends_and_nothing_is_reduced() -> None:
    now = Now()
    budget = now.budget(None, questions_after=2000)
    budget.measured_validation(500.0, 10)
    now.seconds = 1e9
    assert budget.progress() == 0.0
    assert budget.left == math.inf
    assert budget.allows_validation()
    assert budget.affordable_facts(1000) == 1000
    assert budget.seconds_left(1.0) == budget.reserve > 500.0  # it is not over yet


def test_training_ends_when_just_the_time_for_the_rest_is_left() -> None:
    now = Now()
    budget = now.budget(10.0, questions_after=100)
    budget.measured_validation(20.0, 200)
    budget.measured_saving(1.0)
    for seconds in (9.0, 0.5, 0.5):  # the first step compiled
        budget.measured_step(seconds)
    calibration = 100 * (FITTING_SECONDS + UNSORTED_COST * 0.1)
    assert budget.reserve == pytest.approx(0.5 + 20.0 + 2.0 + calibration + WRITING_SECONDS)
    now.seconds = 600.0 - budget.reserve
    assert budget.progress() == pytest.approx(1.0)
    assert budget.seconds_left(0.01) == pytest.approx(budget.reserve)
    now.seconds /= 2
    assert budget.progress() == pytest.approx(0.5)
    assert budget.seconds_left(0.5) == pytest.approx(600.0 - now.seconds)
    assert budget.seconds_left(0.1) == pytest.approx(600.0 - now.seconds)  # there is no more


def test_a_calibration_keeps_no_more_than_its_share() -> None:
    budget = Now().budget(10.0, questions_after=2000)
    budget.measured_queries(10.0, 1)
    assert budget.reserve == pytest.approx(CALIBRATION_SHARE * 600.0 + WRITING_SECONDS)


def test_a_calibration_is_fitted_when_just_the_time_for_that_is_left() -> None:
    now = Now()
    budget = now.budget(10.0)
    now.seconds = 600.0 - WRITING_SECONDS - 500 * FITTING_SECONDS
    assert not budget.is_time_to_fit(499)
    assert budget.is_time_to_fit(501)
    assert not Now().budget(None).is_time_to_fit(10**9)


def test_a_validation_asks_for_what_there_is_time_for_but_not_too_few() -> None:
    budget = Now().budget(10.0)
    assert budget.affordable_facts(1000) == 1000  # nothing is known yet
    budget.measured_queries(0.001, 1)
    assert budget.affordable_facts(1000) == 1000
    budget.measured_queries(0.1, 1)
    assert budget.affordable_facts(1000) == 150  # 30 seconds, in both directions
    budget.measured_queries(5.0, 1)
    assert budget.affordable_facts(1000) == MIN_VALID_FACTS
    assert budget.affordable_facts(7) == 7
    budget.expect_validation(7)
    assert budget.reserve == pytest.approx(70.0 + WRITING_SECONDS)


def test_validations_before_the_last_take_a_part_of_the_time() -> None:
    now = Now()
    budget = now.budget(10.0)
    budget.measured_validation(20.0, 100)
    now.seconds = 100.0
    assert not budget.allows_validation()  # the second one would make it 40 of 100
    now.seconds = 200.0
    assert budget.allows_validation()
    now.seconds = 590.0
    assert not budget.allows_validation()  # the last one is near
