import pytest
import torch

from knowformer.training.checkpoint import Counters
from knowformer.training.selection import Selection, is_clearly_worse


def ranks(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.double)


def weights(value: float) -> dict[str, torch.Tensor]:
    return {"weight": torch.tensor([value])}


def test_weights_that_are_clearly_worse_are_not_the_best_checkpoint() -> None:
    counters = Counters()
    selection = Selection(counters)
    for step, (given, is_best) in enumerate(
        [(ranks(2, 2, 2, 4), True), (ranks(1, 1, 2, 4), True), (ranks(9, 8, 9, 9), False)], start=1
    ):
        counters.step = step
        assert selection.add(given, weights(step)) == is_best
    assert selection.best_weights == weights(2.0)
    assert (counters.best_step, counters.best_mrr) == (2, pytest.approx(2.75 / 4))
    assert counters.record_mrr == counters.best_mrr
    assert counters.validated_step == 3
    assert counters.validations_since_record == 1


def test_where_links_are_told_from_unlinked_pairs_auroc_decides() -> None:
    counters = Counters()
    selection = Selection(counters)
    assert selection.add(ranks(1, 1), weights(1.0), separations=ranks(0.5, 0.6))
    counters.step = 1
    assert selection.add(ranks(9, 9), weights(2.0), separations=ranks(0.8, 0.9))  # lower MRR
    assert counters.record_separations == [0.8, 0.9]
    assert counters.record_mrr == counters.best_mrr == pytest.approx(1 / 9)
    counters.step = 2
    assert not selection.add(ranks(1, 1), weights(3.0), separations=ranks(0.1, 0.2))
    assert (counters.best_step, counters.validations_since_record) == (1, 1)
    assert selection.best_weights == weights(2.0)


def test_the_latest_of_weights_that_cannot_be_distinguished_is_the_best_checkpoint() -> None:
    counters = Counters()
    selection = Selection(counters)
    assert selection.add(ranks(1, 2, 1, 2, 1), weights(1.0))
    counters.step = 5
    assert selection.add(ranks(2, 1, 2, 1, 2), weights(2.0))  # lower, within a standard error
    assert selection.best_weights == weights(2.0)
    assert counters.best_step == 5
    assert counters.best_mrr < counters.record_mrr == pytest.approx(0.8)


def test_weights_are_compared_with_the_record_not_with_the_best_checkpoint() -> None:
    """Otherwise a run could sink a standard error at a time."""
    selection = Selection(Counters())
    assert selection.add(ranks(1, 1, 1, 2, 2), weights(0.0))
    assert selection.add(ranks(1, 1, 2, 1, 4), weights(1.0))
    # Not clearly worse than the second, but clearly worse than the first.
    assert not selection.add(ranks(1, 1, 1, 4, 4), weights(2.0))
    assert selection.best_weights == weights(1.0)


def test_patience_counts_validations_since_the_record() -> None:
    counters = Counters()
    selection = Selection(counters)
    given = [ranks(4, 4), ranks(4, 4), ranks(5, 5), ranks(1, 1), ranks(2, 2)]
    since = []
    for one in given:
        selection.add(one, weights(0.0))
        since.append(counters.validations_since_record)
    assert since == [0, 1, 2, 0, 1]


def test_weights_are_copied() -> None:
    selection = Selection(Counters())
    given = weights(1.0)
    selection.add(ranks(1, 2), given)
    given["weight"].zero_()
    assert selection.best_weights == weights(1.0)


@pytest.mark.parametrize(
    ("reciprocal", "record", "worse"),
    [
        ([0.5, 0.5], [0.5, 0.5], False),
        ([0.5, 0.5], [0.6, 0.6], True),  # no deviation: any difference counts
        ([0.6, 0.6], [0.5, 0.5], False),
        ([0.0, 0.3], [0.5, 0.3], False),  # difference 0.25, standard error 0.25
        ([0.0, 0.2], [0.5, 0.3], True),  # difference 0.3, standard error 0.2
        ([0.4], [0.5], True),
        ([], [], False),
    ],
)
def test_one_standard_error_decides(
    reciprocal: list[float], record: list[float], worse: bool
) -> None:
    given, best = (torch.tensor(values, dtype=torch.double) for values in (reciprocal, record))
    assert is_clearly_worse(given, best) == worse
