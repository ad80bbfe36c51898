"""Trackers: callbacks of ``train`` that log a run to TensorBoard, MLflow or Weights & Biases.

train("umls-pykeen", "runs/umls", on_event=[TensorBoard(), MLflow()])
"""

from collections.abc import Callable

from knowformer.choices import TrackerName
from knowformer.tracking.mlflow import MLflow
from knowformer.tracking.tensorboard import TensorBoard
from knowformer.tracking.tracker import Tracker
from knowformer.tracking.wandb import WandB

TRACKERS: dict[TrackerName, Callable[[], Tracker]] = {
    TrackerName.TENSORBOARD: TensorBoard,
    TrackerName.MLFLOW: MLflow,
    TrackerName.WANDB: WandB,
}
"""Trackers as the command line names them."""

__all__ = ["TRACKERS", "MLflow", "TensorBoard", "Tracker", "WandB"]
