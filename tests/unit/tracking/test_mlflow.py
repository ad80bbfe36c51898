from pathlib import Path

import pytest

from knowformer.tracking import MLflow
from knowformer.tracking.tracker import store_id

from .conftest import TellRun

pytest.importorskip("mlflow")


@pytest.mark.filterwarnings("ignore")  # of packages that mlflow imports
def test_a_resumed_run_goes_on_under_its_id(
    tell_first_half: TellRun,
    tell_resumed: TellRun,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database takes seconds to make
    uri = (tmp_path / "mlruns").as_uri()
    store_id(str(run), "mlflow", "0" * 32)  # of another store
    tell_first_half(MLflow("tests", tracking_uri=uri))
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("tests")
    assert experiment is not None
    (tracked,) = client.search_runs([experiment.experiment_id])
    assert tracked.info.status == "RUNNING"

    tell_resumed(MLflow("tests", tracking_uri=uri))
    (tracked,) = client.search_runs([experiment.experiment_id])
    assert tracked.info.status == "FINISHED"
    assert tracked.info.run_name == "run"
    assert tracked.data.params == {"model.dropout": "0.1", "training.max_minutes": "None"}
    assert tracked.data.tags["run_folder"] == str(run)
    assert tracked.data.metrics["training/queries_per_second"] == 50.0
    assert tracked.data.metrics["validation/hits_at_10"] == 1.0
    assert tracked.data.metrics["final/best_validation/mrr"] == 0.5
    history = client.get_metric_history(tracked.info.run_id, "training/loss")
    assert [entry.value for entry in history if entry.step == 10] == [3.0]
