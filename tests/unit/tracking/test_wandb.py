import time
from pathlib import Path

import pytest

from knowformer.tracking import WandB

from .conftest import TellRun

pytest.importorskip("wandb")


@pytest.mark.filterwarnings("ignore")  # of packages that wandb imports
def test_an_offline_run_is_written_under_one_id(
    tell_first_half: TellRun,
    tell_resumed: TellRun,
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    tell_first_half(WandB())
    time.sleep(1.0)  # the package names a folder by the second
    tell_resumed(WandB())
    folders = sorted((run / "wandb").glob("offline-run-*"))
    files = [path for folder in folders for path in folder.glob("run-*.wandb")]
    assert len({path.name for path in files}) == 1  # the id of the run

    # Records lie there as they are: the package has no reader of its own.
    written = b"".join(path.read_bytes() for path in files)
    for name in ("model.dropout", "training/loss", "validation/mrr", "final/best_validation/mrr"):
        assert name.encode() in written
