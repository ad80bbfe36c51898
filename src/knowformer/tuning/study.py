"""Study: the trials of a search, in a journal that survives ``kill -9``.

Optuna proposes settings and keeps the journal; everything that knows Optuna is in this file.
"""

import logging
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from knowformer.errors import BundleError, printable
from knowformer.tuning.space import Space

if TYPE_CHECKING:
    import optuna

JOURNAL_FILE = "study.journal"
RANDOM_TRIALS = 4  # before the sampler has something to go by
TENTHS = 10  # of a trial's time: trials are compared by what they had reached in each
NEVER_PRUNED_TENTHS = 3
State = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """A finished trial."""

    number: int
    state: State
    settings: dict[str, str]
    """The varied ones, as typed."""
    valid_mrr: float | None
    """Of the kept weights; None if it failed."""
    num_facts: int | None
    """That its validations asked for."""
    error: str | None = None


class Study:
    """Proposes settings and takes results; the process must be the only one at it."""

    def __init__(self, folder: Path, space: Space, *, seed: int) -> None:
        """Opens the journal in a folder, or makes it.

        Trials that were running when their process was killed are marked as failed, their folders
        removed, and their settings tried again.

        Args:
            folder: the search's.
            space: the settings to vary.
            seed: of the proposals.
        """
        import optuna

        self._folder, self._space = folder, space
        path = folder / JOURNAL_FILE
        _mend(path)
        with quiet_optuna():
            self._study = _open_study(path)
        self.is_new = not self._study.trials
        # Another seed in every process: it would propose again what it has proposed.
        self._study.sampler = optuna.samplers.TPESampler(
            seed=seed + len(self._study.trials), n_startup_trials=RANDOM_TRIALS
        )
        self._study.pruner = optuna.pruners.MedianPruner(
            n_startup_trials=RANDOM_TRIALS, n_warmup_steps=NEVER_PRUNED_TENTHS, n_min_trials=2
        )
        self._retry_killed()

    def _retry_killed(self) -> None:
        from optuna.trial import TrialState

        for killed in self._study.get_trials(states=(TrialState.RUNNING,)):
            shutil.rmtree(self.run_folder(killed.number), ignore_errors=True)
            self._study.tell(killed.number, state=TrialState.FAIL)
            self.propose(killed.params)

    def propose(self, settings: dict[str, str]) -> None:
        """Lets the next trial try these settings; what they leave open is proposed as usual."""
        self._study.enqueue_trial(settings)

    def ask(self) -> "RunningTrial":
        """Begins a trial."""
        trial = self._study.ask()
        settings = {
            key: str(trial.suggest_categorical(key, self._space[key])) for key in self._space
        }
        return RunningTrial(self._study, trial, settings, self.run_folder(trial.number))

    def run_folder(self, number: int) -> Path:
        """Returns the run folder of a trial."""
        return self._folder / "trials" / f"{number:03}"

    def trials(self) -> list[Trial]:
        """Returns the finished trials; those that were killed are none."""
        finished: list[Trial] = []
        for frozen in self._study.trials:
            state = _STATES.get(frozen.state.name)
            error: str | None = frozen.user_attrs.get("error")
            if state is None or (state == "failed" and error is None):
                continue
            facts: int | None = frozen.user_attrs.get("num_facts")
            finished.append(Trial(frozen.number, state, frozen.params, frozen.value, facts, error))
        return finished


_STATES: dict[str, State] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


class RunningTrial:
    """A trial: its settings, its run folder, and what it reports."""

    def __init__(
        self,
        study: "optuna.Study",
        trial: "optuna.Trial",
        settings: dict[str, str],
        folder: Path,
    ) -> None:
        self._study, self._trial = study, trial
        self.settings, self.folder = settings, folder
        self._best = 0.0
        self._num_reported = 0

    def is_hopeless(self, valid_mrr: float, *, time_share: float) -> bool:
        """Takes a validation; returns whether trials before had reached more by then.

        Args:
            valid_mrr: its MRR.
            time_share: fraction of the trial's time that is gone.
        """
        tenth = min(int(TENTHS * time_share), TENTHS - 1)
        self._report_before(tenth)
        self._best = max(self._best, valid_mrr)
        self._report_before(tenth + 1)
        return tenth < TENTHS - 1 and self._trial.should_prune()

    def _report_before(self, tenth: int) -> None:
        """Reports the best so far for the tenths before this one that have no report."""
        for passed in range(self._num_reported, tenth):
            self._trial.report(self._best, passed)
        self._num_reported = max(self._num_reported, tenth)

    def complete(self, valid_mrr: float, num_facts: int | None) -> None:
        """Ends the trial with what it has reached."""
        self._report_before(TENTHS)  # it may have ended before its time
        self._trial.set_user_attr("num_facts", num_facts)
        self._study.tell(self._trial, valid_mrr)

    def prune(self, num_facts: int | None) -> None:
        """Ends the trial early; the last report counts."""
        from optuna.trial import TrialState

        self._trial.set_user_attr("num_facts", num_facts)
        self._study.tell(self._trial, state=TrialState.PRUNED)

    def fail(self, error: str) -> None:
        """Ends the trial with an error."""
        from optuna.trial import TrialState

        self._trial.set_user_attr("error", error)
        self._study.tell(self._trial, state=TrialState.FAIL)


def _open_study(journal: Path) -> "optuna.Study":
    """Reads a journal, or begins one.

    Raises:
        BundleError: it is damaged.
    """
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    lock = JournalFileOpenLock(str(journal))
    try:
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(journal), lock))
        return optuna.create_study(
            study_name="tune", storage=storage, direction="maximize", load_if_exists=True
        )
    except (ValueError, TypeError, LookupError, AssertionError) as error:
        raise BundleError(
            f"Expected the journal of a search at {journal}, got: {printable(str(error))}. The "
            "file is damaged; choose another `out`."
        ) from error


def _mend(journal: Path) -> None:
    """Removes what ``kill -9`` may leave: a lock, and a line cut short, which Optuna refuses."""
    journal.with_name(f"{journal.name}.lock").unlink(missing_ok=True)
    if journal.exists():
        with journal.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


@contextmanager
def quiet_optuna() -> Generator[None]:
    """Keeps Optuna's log to warnings, for now."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
