import pytest
import torch

from knowformer.explanation.find.attention_rows import AttentionRows, gather, row_similarity
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


def draw_states() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(1, V, H * C, generator=generator).double() for _ in range(3)]


SIMILARITIES = pytest.mark.parametrize("similarity", ["linear", "exponential", "random_features"])


@SIMILARITIES
def test_with_all_weights_at_one_it_is_what_the_kernels_gather(similarity: Similarity) -> None:
    states, keys, values = draw_states()
    of, kernels = weights(similarity), select_backend("reference")
    expected = kernels.attend(states, keys, values, of, num_heads=H, dropout=None)
    gathered = gather(keys, values, torch.ones(H, V).double(), of)
    torch.testing.assert_close(kernels.finish_layer(states, gathered, of, dropout=None), expected)


@SIMILARITIES
def test_an_entity_counts_by_its_weight_in_every_row(similarity: Similarity) -> None:
    _, keys, values = draw_states()
    of = weights(similarity)
    attended = torch.rand(H, V, generator=torch.Generator().manual_seed(2)).double()
    attended[:, 3] = 0.0
    gathered = gather(keys, values, attended, of)
    v = values[0].unflatten(-1, (H, C)).transpose(0, 1)
    for entity in range(V):
        kappa = attended * row_similarity(keys, entity, of, H)
        total = V * v[:, entity] + (kappa[..., None] * v).sum(1)
        expected = total / (V + kappa.sum(1, keepdim=True))
        torch.testing.assert_close(gathered[0, entity], expected.flatten())


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
