import torch

from knowformer.explanation.find.attention_rows import AttentionRows


def rows() -> AttentionRows:
    lift = torch.tensor([[[3.0, 1.0, 2.0, 0.5]], [[3.0, 1.0, 1.0, 0.5]]])
    influence = torch.tensor([[[0.9, 0.2, -0.5, 0.0]], [[0.0, 0.1, -0.5, 0.0]]])
    return AttentionRows(lift=lift, influence=influence)


def test_prototypes_are_those_the_answer_gains_by_without_the_answer_itself() -> None:
    assert rows().most_influential(10, 0) == [1]
    assert rows().most_influential(10, 3) == [0, 1]
    assert rows().most_influential(1, 3) == [0]


def test_attended_are_those_with_the_largest_attention_whatever_it_does() -> None:
    assert rows().most_attended(2, 0) == [2, 1]


def test_rows_of_a_part_are_spread_over_the_graph() -> None:
    spread = rows().spread(torch.tensor([1, 2, 4, 6]), 7)
    assert spread.lift[0, 0].tolist() == [0.0, 3.0, 1.0, 0.0, 2.0, 0.0, 0.5]
    assert spread.most_influential(10, 0) == [1, 2]
    assert spread.most_attended(2, 1) == [4, 2]
