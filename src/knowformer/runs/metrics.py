"""metrics.json: the validation of the kept weights, baselines beside, then each evaluation."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from knowformer.errors import BundleError
from knowformer.evaluation.baselines.comparison import BaselineReport
from knowformer.evaluation.baselines.ranking import BASELINES, Baseline
from knowformer.runs.stored_files import first_fault, read_text, write_json
from knowformer.storage.locks import sole_process

METRICS_FILE = "metrics.json"
WAIT_SECONDS = 60.0  # for another process, which is done in milliseconds


class _BestValidation(BaseModel):
    """Of the kept weights."""

    model_config = ConfigDict(strict=True, extra="allow")

    step: int = Field(ge=0)
    valid_mrr: float = Field(ge=-1.0, le=1.0)
    num_facts: Annotated[int, Field(ge=0)] | None = None


class _MetricsFile(BaseModel):
    """What is read again; evaluations are stored for people and other programs."""

    model_config = ConfigDict(strict=True, extra="allow")

    best_validation: _BestValidation | None = None
    validation_baselines: dict[Baseline, BaselineReport] | None = None

    @model_validator(mode="after")
    def _has_all(self) -> "_MetricsFile":
        if any(getattr(self, name) is None for name in self.model_fields_set):
            raise ValueError("expected an object, not null")
        reports = self.validation_baselines
        if reports is None:
            return self
        for name in BASELINES:
            if name not in reports or "mrr" not in reports[name].realistic:
                raise ValueError(f"expected the MRR of the baseline {name}")
        return self


def read_metrics(folder: Path) -> dict[str, Any]:
    """Reads metrics.json; empty when there is none.

    Raises:
        BundleError: the file is damaged.
    """
    path = folder / METRICS_FILE
    if not path.exists():
        return {}
    remedy = "The file is damaged; remove it and evaluate again."
    try:
        metrics: Any = json.loads(read_text(path), parse_float=_finite, parse_constant=_finite)
        _MetricsFile.model_validate(metrics)
    except ValidationError as error:
        raise BundleError(
            f"Expected metrics in {path}, got: {first_fault(error)}. {remedy}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BundleError(f"Expected JSON in {path}, got: {error}. {remedy}") from error
    return metrics


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a number that is not finite, {text}")
    return number


def update_metrics(folder: Path, entry: dict[str, Any]) -> None:
    """Adds or replaces entries of metrics.json."""
    change_metrics(folder, lambda stored: stored | entry)


def change_metrics(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Writes what a function makes of metrics.json; one process after the other.

    A training writes it, and so does an evaluation of the same run meanwhile: neither may lose what
    the other has written.

    Raises:
        BundleError: the file is damaged, or another process does not leave it.
    """
    path = folder / METRICS_FILE
    refusal = BundleError(
        f"Expected {path} to be free, found another process at it for {WAIT_SECONDS:.0f} seconds. "
        "Wait until it is done."
    )
    with sole_process(folder / f".{METRICS_FILE}.lock", refusal, wait=WAIT_SECONDS):
        write_json(path, change(read_metrics(folder)))
