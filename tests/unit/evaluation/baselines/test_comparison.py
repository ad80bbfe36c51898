import torch

from knowformer.evaluation.baselines.comparison import compare, is_clearly_above, unbeaten
from knowformer.evaluation.ranks import Ranks


def ranks(values: list[float]) -> Ranks:
    optimistic = torch.tensor(values, dtype=torch.double)
    return Ranks(optimistic, optimistic + 1, torch.ones(len(values), dtype=torch.bool))


def test_a_difference_within_two_standard_errors_is_not_clear() -> None:
    model = torch.tensor([1.0, 1.0, 1.0, 0.5], dtype=torch.double)
    assert is_clearly_above(model, model - torch.tensor([0.5, 0.4, 0.5, 0.1]))
    assert not is_clearly_above(model, model - torch.tensor([0.5, -0.4, 0.5, -0.1]))
    assert not is_clearly_above(model, model)
    assert not is_clearly_above(model[:1], model[:1] - 0.5)


def test_baselines_have_metrics_by_side_and_a_verdict() -> None:
    asks_head = torch.tensor([False, False, True, True])
    baselines = {"rules": ranks([1, 1, 1, 1]), "popularity": ranks([3, 3, 9, 9])}
    reports = compare(torch.tensor([0.6, 0.7, 0.7, 0.6], dtype=torch.double), baselines, asks_head)
    popularity = reports["popularity"]
    assert popularity.optimistic["mr"] == 6.0
    assert (popularity.tail["mr"], popularity.head["mr"]) == (3.5, 9.5)
    assert [report.is_beaten for report in reports.values()] == [False, True]
    assert unbeaten(reports) == "two-hop rules (0.667)"
    assert unbeaten({"popularity": popularity}) is None
