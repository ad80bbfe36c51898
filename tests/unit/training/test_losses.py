import math

import pytest
import torch
from torch import Tensor

from knowformer.training.losses import binary_loss, cross_entropy_loss, pair_loss

SCORES = torch.tensor([[2.0, 1.0, 0.0, -1.0], [0.5, 3.0, -2.0, 1.0]])
KNOWN = torch.tensor([[True, True, False, False], [False, False, False, True]])
ROWS = torch.tensor([0, 0, 1])
TAILS = torch.tensor([0, 1, 3])
NEGATIVES = torch.tensor([[2, 3, 3], [0, 1, 0]])


def mean_cross_entropy(scores: Tensor, known: Tensor, rows: Tensor, tails: Tensor) -> Tensor:
    return cross_entropy_loss(scores, known, rows, tails, num_facts=len(tails))


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def test_cross_entropy_sets_each_answer_against_all_that_is_not_known() -> None:
    def fact_loss(answer: float, others: list[float]) -> float:
        return -math.log(math.exp(answer) / sum(map(math.exp, [answer, *others])))

    expected = [
        fact_loss(2.0, [0.0, -1.0]),  # the other answer, at 1.0, does not compete
        fact_loss(1.0, [0.0, -1.0]),
        fact_loss(1.0, [0.5, 3.0, -2.0]),
    ]
    loss = mean_cross_entropy(SCORES, KNOWN, ROWS, TAILS)
    assert loss.item() == pytest.approx(sum(expected) / 3, rel=1e-6)


def test_a_known_answer_that_is_not_asked_for_is_neither_raised_nor_lowered() -> None:
    scores = SCORES.clone().requires_grad_()
    mean_cross_entropy(scores, KNOWN, ROWS[[0, 2]], TAILS[[0, 2]]).backward()
    assert scores.grad is not None
    assert scores.grad[0, 1] == 0
    assert scores.grad[0, 0] < 0
    assert (scores.grad[0, 2:] > 0).all()


def test_pair_loss_raises_linked_pairs_and_lowers_the_others() -> None:
    scores = SCORES.clone().requires_grad_()
    loss = pair_loss(
        scores, KNOWN, torch.tensor([0, 1, 1]), torch.tensor([1, 3, 1]), num_pairs=4
    )  # the fourth pair is in another micro-batch
    expected = softplus(-1.0) + softplus(-1.0) + softplus(3.0)
    assert loss.item() == pytest.approx(expected / 4, rel=1e-6)
    loss.backward()
    assert scores.grad is not None
    signs = [[0, -1, 0, 0], [0, 1, 0, -1]]
    assert scores.grad.sign().tolist() == signs


def binary(scores: Tensor, *, known: Tensor = KNOWN, temperature: float) -> Tensor:
    return binary_loss(
        scores,
        known,
        ROWS,
        TAILS,
        num_queries=2,
        negatives=NEGATIVES,
        adversarial_temperature=temperature,
    )


def test_binary_loss_at_temperature_zero_weights_negatives_equally() -> None:
    first = (softplus(-2.0) + softplus(-1.0)) / 2
    first += (softplus(0.0) + 2 * softplus(-1.0)) / 3
    second = softplus(-1.0) + (2 * softplus(0.5) + softplus(3.0)) / 3
    loss = binary(SCORES, temperature=0.0)
    assert loss.item() == pytest.approx((first + second) / 2, rel=1e-6)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_binary_loss_weights_negatives_by_the_softmax_of_their_scores(temperature: float) -> None:
    def weighted(scores: list[float]) -> float:
        weights = [math.exp(score / temperature) for score in scores]
        terms = [w * softplus(score) for w, score in zip(weights, scores, strict=True)]
        return sum(terms) / sum(weights)

    first = (softplus(-2.0) + softplus(-1.0)) / 2 + weighted([0.0, -1.0, -1.0])
    second = softplus(-1.0) + weighted([0.5, 3.0, 0.5])
    loss = binary(SCORES, temperature=temperature)
    assert loss.item() == pytest.approx((first + second) / 2, rel=1e-6)


def test_the_weights_of_negatives_carry_no_gradient() -> None:
    scores = SCORES.clone().requires_grad_()
    binary(scores, temperature=1.0).backward()
    assert scores.grad is not None
    weights = torch.softmax(torch.tensor([0.5, 3.0, 0.5]), 0)
    expected = weights[1] * torch.sigmoid(torch.tensor(3.0)) / 2
    assert scores.grad[1, 1].item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_where_every_entity_is_known_the_binary_loss_is_that_of_the_answers(
    temperature: float,
) -> None:
    known = KNOWN.clone()
    known[0] = True
    scores = SCORES.clone().requires_grad_()
    loss = binary(scores, known=known, temperature=temperature)
    only_answers = (softplus(-2.0) + softplus(-1.0)) / 2
    rest = binary(SCORES, temperature=temperature)
    first = (softplus(-2.0) + softplus(-1.0)) / 2
    negatives = SCORES[0, NEGATIVES[0]]
    shares = torch.softmax(negatives / temperature, 0) if temperature else torch.ones(3) / 3
    first += (shares * torch.nn.functional.softplus(negatives)).sum().item()
    assert loss.item() == pytest.approx(rest.item() + (only_answers - first) / 2, rel=1e-5)
    loss.backward()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[0, 2:] == 0).all()


def test_where_every_entity_is_known_cross_entropy_has_nothing_to_say() -> None:
    known = KNOWN.clone()
    known[0] = True
    scores = SCORES.clone().requires_grad_()
    loss = mean_cross_entropy(scores, known, ROWS, TAILS)
    alone = mean_cross_entropy(SCORES, known, ROWS[2:], TAILS[2:])
    assert loss.item() == pytest.approx(alone.item() / 3, rel=1e-6)
    loss.backward()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[0] == 0).all()


@pytest.mark.parametrize("shift", [1e4, -1e4])
def test_losses_stay_finite_for_extreme_scores(shift: float) -> None:
    scores = (SCORES * 1e3 + shift).requires_grad_()
    loss = mean_cross_entropy(scores, KNOWN, ROWS, TAILS) + binary(scores, temperature=1.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()
