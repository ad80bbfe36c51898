from pathlib import Path

import pytest

from knowformer.tracking import TensorBoard

from .conftest import TellRun

pytest.importorskip("tensorboard")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # tensorboard's own
def test_a_resumed_run_reads_as_one(
    tell_first_half: TellRun, tell_resumed: TellRun, run: Path, tmp_path: Path
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for logs, found in ((None, run / "tensorboard"), (tmp_path / "logs", tmp_path / "logs/run")):
        tell_first_half(TensorBoard(logs))
        tell_resumed(TensorBoard(logs))
        reader = EventAccumulator(str(found))
        reader.Reload()
        losses = [(event.step, event.value) for event in reader.Scalars("training/loss")]
        assert losses == [(10, 3.0), (20, 2.0)]  # step 20 was lost, and is there once
        assert [event.value for event in reader.Scalars("validation/hits_at_1")] == [0.25]
        assert [event.step for event in reader.Scalars("final/best_validation/mrr")] == [20]
        (text,) = reader.Tensors("settings/text_summary")[-1].tensor_proto.string_val
        assert b"| model.dropout | 0.1 |" in text
        assert str(run).encode() in text
