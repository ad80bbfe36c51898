"""MLflow: a run in an experiment of a tracking server or of a local store."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from knowformer.errors import require_package
from knowformer.tracking.tracker import Tracker, store_id, stored_id
from knowformer.training.events import StartEvent

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARAMETERS_AT_ONCE = 100  # MLflow takes no more

_logger = logging.getLogger(__name__)


class MLflow(Tracker):
    """Logs a run to MLflow. A run that is resumed goes on under its id."""

    service: ClassVar[str] = "MLflow"

    def __init__(self, experiment: str = "knowformer", *, tracking_uri: str | None = None) -> None:
        """Does nothing before a run starts.

        Args:
            experiment: its name; made if there is none.
            tracking_uri: a server or store; by default ``$MLFLOW_TRACKING_URI``, or what MLflow
                takes without it.

        Raises:
            MissingPackageError: mlflow is not installed.
        """
        require_package("mlflow", extra="mlflow", purpose="track a run with it")
        super().__init__()
        self._experiment = experiment
        self._tracking_uri = tracking_uri
        self._client: MlflowClient | None = None
        self._run_id = ""

    def start(self, event: StartEvent) -> None:
        """Opens a run, with the settings as its parameters, or goes on with it."""
        import mlflow

        uri = self._tracking_uri or mlflow.get_tracking_uri()
        client = self._client = mlflow.MlflowClient(uri)
        known = stored_id(event["run"], "mlflow")
        if known is None or not _has_run(client, known):
            self._run_id = self._create(client, event)
            store_id(event["run"], "mlflow", self._run_id)
        else:
            self._run_id = known
            client.update_run(known, status="RUNNING")
        _logger.info("MLflow run %s in %s.", self._run_id, uri)

    def _create(self, client: "MlflowClient", event: StartEvent) -> str:
        from mlflow.entities import Param

        found = client.get_experiment_by_name(self._experiment)
        experiment = found.experiment_id if found else client.create_experiment(self._experiment)
        run = Path(event["run"])
        tags = {"run_folder": str(run.absolute()), "dataset": event["dataset"]}
        run_id: str = client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
        settings = [Param(key, str(value)) for key, value in event["settings"].items()]
        for first in range(0, len(settings), PARAMETERS_AT_ONCE):
            client.log_batch(run_id, params=settings[first : first + PARAMETERS_AT_ONCE])
        return run_id

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers of a step."""
        from mlflow.entities import Metric

        assert self._client is not None
        now = round(1000 * time.time())
        metrics = [Metric(name, value, now, step) for name, value in values.items()]
        self._client.log_batch(self._run_id, metrics=metrics)

    def finish(self) -> None:
        """Marks the run as finished."""
        assert self._client is not None
        self._client.set_terminated(self._run_id)


def _has_run(client: "MlflowClient", run_id: str) -> bool:
    """Returns False for a run of another store."""
    from mlflow.exceptions import MlflowException

    try:
        client.get_run(run_id)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        return False
    return True
