"""Budget: the minutes of a run, divided between training and what follows its last step.

What follows is the last validation, the calibration and the writing of files. How long they will
take is measured while the run goes on, and kept free: training ends, and its learning rate with
it, when just that much time is left.
"""

import math

from knowformer.training.clock import Clock

MIN_VALID_FACTS = 50  # fewer would choose the best checkpoint by luck
LAST_VALIDATION_SHARE = 0.05  # of the budget, at most, unless the facts would be too few
VALIDATIONS_SHARE = 0.2  # of the time so far that validations before the last may have taken
CALIBRATION_SHARE = 0.15  # of the budget that is kept for it at most
WRITING_SECONDS = 3.0  # weights, metrics, the picture of the learning curve, the end of the process
WRITING_SHARE = 0.05  # of a budget that is too short to keep even these free
FITTING_SECONDS = 0.004  # of a calibration, per question, after they are all scored
UNSORTED_COST = 1.5  # of a calibration's questions, in random order, relative to a validation's


class Budget:
    """The time that a run has, and what it keeps free for what follows training."""

    def __init__(self, minutes: float | None, clock: Clock, *, questions_after: int = 0) -> None:
        """Starts without a measurement.

        Args:
            minutes: of the whole run; None: no end.
            clock: the run's.
            questions_after: that will be scored after training, for the calibration.
        """
        self.seconds = math.inf if minutes is None else 60.0 * minutes
        self._writing_seconds = min(WRITING_SECONDS, WRITING_SHARE * self.seconds)
        self._clock = clock
        self._questions_after = questions_after
        self._seconds_per_query = 0.0
        self._validation_seconds = 0.0
        self._all_validations = 0.0
        self._step_seconds = self._last_step = 0.0
        self._saving_seconds = 0.0

    @property
    def is_limited(self) -> bool:
        """Whether there is an end."""
        return self.seconds < math.inf

    @property
    def left(self) -> float:
        """Seconds left before files are written."""
        return self.seconds - self._clock.elapsed() - self._writing_seconds

    @property
    def reserve(self) -> float:
        """Seconds that what follows the last step will take."""
        calibration = 0.0
        if self._questions_after:
            calibration = self.calibration_seconds(self._questions_after)
            calibration = min(calibration, CALIBRATION_SHARE * self.seconds)
        after = self._step_seconds + self._validation_seconds + 2 * self._saving_seconds
        return after + calibration + self._writing_seconds

    def calibration_seconds(self, num_questions: int, num_scored: int = 0) -> float:
        """Predicts how long a calibration takes, from when some of its questions are scored."""
        scoring = UNSORTED_COST * self._seconds_per_query * (num_questions - num_scored)
        return scoring + FITTING_SECONDS * num_questions

    def is_time_to_fit(self, num_scored: int) -> bool:
        """Returns whether there is no time for more questions of a calibration."""
        return self.left <= self.calibration_seconds(num_scored, num_scored)

    def progress(self, since: float = 0.0) -> float:
        """Returns the fraction of training's time that is gone, counted from some second."""
        if not self.is_limited:
            return 0.0
        available = self.seconds - self.reserve - since
        return (self._clock.elapsed() - since) / available if available > 0 else 1.0

    def seconds_left(self, work_done: float, since: float = 0.0) -> float:
        """Predicts the seconds to the end of the run.

        Args:
            work_done: fraction of training's work that is done.
            since: the second that training began.
        """
        elapsed = self._clock.elapsed()
        by_work = (elapsed - since) * (1.0 - work_done) / max(work_done, 1e-9) + self.reserve
        return min(by_work, self.seconds - elapsed)

    def allows_validation(self) -> bool:
        """Returns whether there is time for a validation before the last one."""
        if not self.is_limited:
            return True
        elapsed = self._clock.elapsed()
        validated = self._all_validations + self._validation_seconds
        in_time = elapsed + self._validation_seconds < self.seconds - self.reserve
        return in_time and validated <= VALIDATIONS_SHARE * elapsed

    def affordable_facts(self, wanted: int) -> int:
        """Returns how many facts a validation may ask for, each in both directions."""
        if not self.is_limited or not self._seconds_per_query:
            return wanted
        seconds = LAST_VALIDATION_SHARE * self.seconds
        number = int(seconds / (2 * self._seconds_per_query))
        return min(wanted, max(MIN_VALID_FACTS, number))

    def expect_validation(self, num_facts: int) -> None:
        """Predicts how long a validation takes, until one was measured."""
        self._validation_seconds = 2 * num_facts * self._seconds_per_query

    def measured_queries(self, seconds: float, num_queries: int) -> None:
        """Takes how long queries took to score."""
        self._seconds_per_query = seconds / max(1, num_queries)

    def measured_validation(self, seconds: float, num_queries: int) -> None:
        """Takes how long a validation took."""
        self.measured_queries(seconds, num_queries)
        self._validation_seconds = seconds
        self._all_validations += seconds

    def measured_step(self, seconds: float) -> None:
        """Takes how long a training step took; one among quick ones, which compiled, is no rule."""
        self._step_seconds, self._last_step = min(self._last_step, seconds), seconds

    def measured_saving(self, seconds: float) -> None:
        """Takes how long a checkpoint took to write."""
        self._saving_seconds = seconds
