"""Identity noise: the epsilon of eq. 6, a function of seed, layer and entity and nothing else.

Scoring twice gives equal bits, and a query's scores do not depend on its batch mates. An entity's
noise follows its name, so renumbering the entities of a graph permutes the scores.
"""

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.model.config import ModelConfig
from knowformer.seeding import counter_normal, derive_seed


def inference_draw(sample: int = 0) -> str:
    """Returns the name of a draw at inference, apart from those of training steps."""
    return f"inference-{sample}"


def identity_noise(
    config: ModelConfig, entity_keys: npt.NDArray[np.uint64], *, seed: int, draw: str | int = 0
) -> Float[Tensor, "L V noise"]:
    """Returns noise for every layer and entity, shared by all queries.

    Args:
        config: gives layers, width and scale.
        entity_keys: one 64-bit key per entity.
        seed: the root seed.
        draw: which of many independent draws: a training step, or a sample at inference.
    """
    layers = [
        counter_normal(derive_seed(seed, "noise", draw, layer), entity_keys, config.noise_width)
        for layer in range(config.layers)
    ]
    return torch.from_numpy(np.stack(layers)) * config.noise_scale
