import pytest
import torch

from knowformer.explanation.attention_rows import AttentionRows, gather_row, row_similarity
from knowformer.kernels.interface import AttendWeights, Similarity, select_backend

V, H, C = 7, 2, 4


def weights(similarity: Similarity) -> AttendWeights:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).double()

    width = H * C
    linear = [(draw(width, width), draw(width)) for _ in range(4)]
    norms = [(torch.ones(width).double(), torch.zeros(width).double()) for _ in range(2)]
    features = draw(H, C, 6) if similarity == "random_features" else None
    return AttendWeights.pack(
        (linear[0], linear[1]), norms[0], (linear[2], linear[3]), norms[1], similarity, features
    )


@pytest.mark.parametrize("similarity", ["linear", "exponential", "random_features"])
def test_a_row_is_what_the_kernels_gather_for_that_entity(similarity: Similarity) -> None:
    generator = torch.Generator().manual_seed(1)
    states, keys, values = (
        torch.randn(1, V, H * C, generator=generator).double() for _ in range(3)
    )
    of = weights(similarity)
    kernels = select_backend("reference")
    expected = kernels.attend(states, keys, values, of, num_heads=H, dropout=None)
    for entity in range(V):
        gathered = gather_row(row_similarity(keys, entity, of, H), values, entity)
        row = kernels.finish_layer(states[:, entity : entity + 1], gathered, of, dropout=None)
        torch.testing.assert_close(row[0, 0], expected[0, entity])


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
