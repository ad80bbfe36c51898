import pytest
import torch

from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer
from knowformer.training.config import TrainingConfig
from knowformer.training.optimizer import build_optimizer, learning_rate


def rate(step: int, progress: float, **settings: object) -> float:
    config = TrainingConfig.model_validate({"learning_rate": 0.01, "warmup_steps": 0, **settings})
    return learning_rate(config, step=step, progress=progress)


@pytest.mark.parametrize(
    ("progress", "expected"), [(0.0, 0.01), (0.25, 0.0085355), (0.5, 0.005), (1.0, 0.0), (7.0, 0.0)]
)
def test_cosine_falls_from_the_peak_to_zero(progress: float, expected: float) -> None:
    assert rate(100, progress, schedule="cosine") == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("progress", "expected"),
    [(0.0, 0.01), (0.49, 0.01), (0.5, 0.001), (0.75, 0.0001), (1.0, 0.0001)],
)
def test_steps_fall_by_ten_at_a_half_and_at_three_quarters(
    progress: float, expected: float
) -> None:
    assert rate(100, progress, schedule="steps") == pytest.approx(expected)


def test_a_constant_rate_stays() -> None:
    assert {rate(step, step / 100, schedule="constant") for step in range(101)} == {0.01}


def test_warm_up_rises_in_equal_steps_and_is_never_zero() -> None:
    rates = [rate(step, 0.0, schedule="constant", warmup_steps=4) for step in range(6)]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


def test_matrices_decay_and_vectors_do_not() -> None:
    model = KnowFormer(ModelConfig(hidden_dim=8, num_layers=1), 4)
    optimizer = build_optimizer(model, TrainingConfig(weight_decay=0.3, learning_rate=0.02))
    decay = {
        id(parameter): group.weight_decay
        for group in optimizer.groups
        for parameter in group.parameters
    }
    assert set(decay) == {id(parameter) for parameter in model.parameters()}
    for name, parameter in model.named_parameters():
        assert decay[id(parameter)] == (0.3 if parameter.ndim == 2 else 0.0), name
    assert optimizer.learning_rate == 0.02


def test_it_has_the_bits_and_the_state_of_torchs_own() -> None:
    """Ours is there for its quick start alone; see ``Adam``."""
    config = TrainingConfig(weight_decay=0.1, learning_rate=0.02)
    model, twin = (KnowFormer(ModelConfig(hidden_dim=8, num_layers=1), 4) for _ in range(2))
    twin.load_state_dict(model.state_dict())
    ours = build_optimizer(model, config)
    theirs = torch.optim.Adam(
        [
            {"params": [p for p in twin.parameters() if p.ndim > 1], "weight_decay": 0.1},
            {"params": [p for p in twin.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ],
        fused=True,
    )
    draw = torch.Generator().manual_seed(0)
    for step in range(3):
        ours.learning_rate = 0.02 / (step + 1)
        for group in theirs.param_groups:
            group["lr"] = ours.learning_rate
        for number, (own, other) in enumerate(
            zip(model.parameters(), twin.parameters(), strict=True)
        ):
            has_gradient = step > 0 or number % 2 == 0  # the others begin a step later
            gradient = torch.randn(own.shape, generator=draw)
            own.grad, other.grad = (gradient.clone() if has_gradient else None for _ in range(2))
        ours.step()
        theirs.step()
    for own, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(own, other)
        state = theirs.state[other]
        assert ours.state[own].keys() == state.keys()
        assert all(torch.equal(ours.state[own][key], state[key]) for key in state)
    ours.zero_grad()
    assert all(parameter.grad is None for parameter in model.parameters())
