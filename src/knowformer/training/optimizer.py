"""Adam, its parameter groups, and the learning rate as a function of progress."""

import math

import torch
from torch import nn

from knowformer.training.config import TrainingConfig


def build_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Adam:
    """Builds Adam; biases, norms and single vectors do not decay."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.Adam(groups, lr=config.learning_rate, fused=True)


def learning_rate(config: TrainingConfig, *, step: int, progress: float) -> float:
    """Returns the learning rate at a step.

    Args:
        config: gives the schedule and the peak.
        step: steps done before, for the warm-up.
        progress: fraction of the run that is done.
    """
    peak = config.learning_rate * min(1.0, (step + 1) / max(1, config.warmup_steps))
    progress = min(max(progress, 0.0), 1.0)
    if config.schedule == "cosine":
        return peak * 0.5 * (1.0 + math.cos(math.pi * progress))
    if config.schedule == "steps":
        return peak * 0.1 ** sum(progress >= milestone for milestone in (0.5, 0.75))
    return peak
