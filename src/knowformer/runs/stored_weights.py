"""The weights of a run folder, compared with its settings before memory is given to either."""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from knowformer.errors import BundleError
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer, current_name
from knowformer.storage.tensor_files import read_layout, read_tensors
from knowformer.training.config import RunConfig


def load_model(
    path: Path, config: RunConfig, relations: Vocabulary
) -> tuple[KnowFormer, dict[str, str]]:
    """Loads the model of a run, and what is stored beside its weights.

    Raises:
        BundleError: the file is missing or damaged, or holds other weights than the settings say.
    """
    if config.model.relation_encoder == "table" and not len(relations):
        raise BundleError(
            f"Expected the relations that the weights in {path} belong to, found none in this "
            "run's data set. Copy the folder again, or train anew."
        )
    with torch.device("meta"):  # names, types and sizes, but no memory
        model = KnowFormer(config.model, num_with_inverses(len(relations)), backend=config.backend)
    wanted = {name: (w.dtype, tuple(w.shape)) for name, w in model.state_dict().items()}
    found = {current_name(name): layout for name, layout in read_layout(path).items()}
    if found != wanted:
        raise BundleError(
            f"Expected the weights of this run's settings in {path}, got others. Was config.toml "
            "edited after training?"
        )
    mapped, metadata = read_tensors(path)
    # As they come, they are the file itself, mapped into memory, which somebody may write to.
    weights = {name: each.clone() for name, each in mapped.items()}
    check_finite(path, weights)
    model.load_state_dict(weights, assign=True)
    return model, metadata


def check_finite(path: Path, weights: dict[str, Tensor]) -> None:
    """Checks that every weight is a number.

    Raises:
        BundleError: one is not.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for name, each in weights.items():
            # A finite sum has finite parts, and takes a fifth of the time of looking at each.
            if not math.isfinite(each.numpy().sum()) and not bool(each.isfinite().all()):
                raise BundleError(
                    f"Expected finite weights in {path}, got NaN or infinity in {name!r}. The file "
                    "is damaged; copy it again or train anew."
                )
