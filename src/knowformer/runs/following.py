"""Take part in a training that another process leads, on a copy of what its run folder holds."""

from pathlib import Path
from tempfile import TemporaryDirectory

from knowformer.runs.folder import (
    CALIBRATION_FILE,
    CHECKPOINT_FILE,
    CONFIG_FILE,
    INITIAL_FILE,
    WEIGHTS_FILE,
    Bundle,
    load_calibration,
    load_config,
    load_initial_weights,
    load_run_dataset,
)
from knowformer.runs.stored_dataset import FACTS_FILE, NAMES_FILE
from knowformer.training.distributed import Processes
from knowformer.training.loop import Trainer
from knowformer.training.validation import training_splits

BEFORE = (CONFIG_FILE, NAMES_FILE, FACTS_FILE, INITIAL_FILE, CHECKPOINT_FILE)
AFTER = (WEIGHTS_FILE, CALIBRATION_FILE)


def send_run(
    processes: Processes, folder: Path, *, resume: bool, plan: bool, questions_after: int
) -> None:
    """Sends a run that is about to be trained to the processes that follow."""
    told = [int(resume), int(plan), questions_after]
    processes.send_files([folder / name for name in BEFORE], told)


def send_result(processes: Processes, folder: Path) -> None:
    """Sends what a training has come to; until then the others wait."""
    processes.send_files([folder / name for name in AFTER])


def follow_run(processes: Processes) -> Bundle:
    """Takes part in a training from its start to its end, and returns what it has come to."""
    with TemporaryDirectory(prefix="knowformer-") as name:
        folder = Path(name)
        resume, plan, questions_after = processes.receive_files(folder)
        config, dataset = load_config(folder), load_run_dataset(folder)
        trainer = Trainer(
            training_splits(dataset, config),
            config,
            folder,
            questions_after=questions_after,
            weights=load_initial_weights(folder, config, dataset.relations),
            processes=processes,
        )
        if plan:
            trainer.plan()
        trainer.prepare(resume=bool(resume))
        model = trainer.run()
        processes.receive_files(folder)
        calibration = load_calibration(folder)
    return Bundle(folder, config, dataset, model.eval(), config.training.link, calibration)
