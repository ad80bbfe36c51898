"""Adam, its parameter groups, and the learning rate as a function of progress."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from knowformer.training.config import TrainingConfig

BETAS = (0.9, 0.999)
EPSILON = 1e-8


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters with a weight decay of their own."""

    parameters: list[nn.Parameter]
    weight_decay: float


@dataclass
class Adam:
    """``torch.optim.Adam``, fused, with the same bits and a state of the same form.

    That class loads torch's compiler as soon as it is made, which nothing here uses and which takes
    as long as loading torch; this one calls the same function.
    """

    groups: list[ParameterGroup]
    learning_rate: float
    state: dict[nn.Parameter, dict[str, Tensor]] = field(default_factory=dict)
    """Steps and moments of every parameter that has had a gradient."""

    @torch.no_grad()
    def step(self) -> None:
        """Updates the parameters that have a gradient."""
        for group in self.groups:
            parameters = [p for p in group.parameters if p.grad is not None]
            states = [self._state_of(parameter) for parameter in parameters]
            adam(
                list[Tensor](parameters),
                [p.grad for p in parameters if p.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                fused=True,
                amsgrad=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=self.learning_rate,
                weight_decay=group.weight_decay,
                eps=EPSILON,
                maximize=False,
            )

    def zero_grad(self) -> None:
        """Forgets the gradients."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    def _state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        if parameter not in self.state:
            self.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.state[parameter]


def build_optimizer(model: nn.Module, config: TrainingConfig) -> Adam:
    """Builds Adam; biases, norms and single vectors do not decay."""
    parameters = list(model.parameters())
    groups = [
        ParameterGroup([p for p in parameters if p.ndim > 1], config.weight_decay),
        ParameterGroup([p for p in parameters if p.ndim <= 1], 0.0),
    ]
    return Adam(groups, config.learning_rate)


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
