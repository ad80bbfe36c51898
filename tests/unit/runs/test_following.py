"""What is sent and received is tested with ``training/distributed.py``; here, what a run needs."""

from pathlib import Path

import torch

from knowformer.data.dataset import Dataset
from knowformer.pipeline import train
from knowformer.runs.following import AFTER, BEFORE, follow_run, send_result, send_run
from knowformer.training.clock import Clock
from knowformer.training.distributed import Processes
from tests.unit.training.test_distributed import config_of, together


def test_a_finished_run_is_followed_from_its_files_alone(tmp_path: Path, ring: Dataset) -> None:
    run = tmp_path / "run"
    trained = train(ring, run, config=config_of(0), calibrate=False)
    present = {path.name for path in run.iterdir()}
    assert present & set(BEFORE) == set(BEFORE) - {"initial.safetensors"}
    assert AFTER[0] in present

    def work(processes: Processes, number: int) -> dict[str, torch.Tensor]:
        if number == 0:
            send_run(processes, run, resume=True, plan=False, questions_after=0)
            for _ in range(2):  # the ticks of a run that is over, of which there are no steps
                processes.clock(Clock()).tick()
            send_result(processes, run)
            return trained.model.state_dict()
        bundle = follow_run(processes)
        assert bundle.dataset.same_as(ring)
        return bundle.model.state_dict()

    lead, followed = together(2, work)
    assert all(torch.equal(value, followed[name]) for name, value in lead.items())
