from collections.abc import Iterator

import pytest
import torch

from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.relation_encoder import (
    RelationEncoder,
    RelationProjection,
    TableEncoder,
    encode_invariantly,
)
from knowformer.model.weights import RelationVectors, tensors_in

NUM_RELATIONS = 22
PERMUTATION = torch.tensor([2, 1, 0, *range(3, 11), 13, 12, 11, *range(14, 22)])


@pytest.fixture(scope="module")
def encoder() -> TableEncoder:
    config = ModelConfig(hidden_dim=32, num_layers=2, num_query_key_hops=2, num_value_hops=3)
    model = KnowFormer(config, NUM_RELATIONS)
    initialize(model, generator=torch.Generator().manual_seed(0))
    assert isinstance(model.encoder, TableEncoder)
    return model.encoder


def row(vectors: RelationVectors, number: int) -> Iterator[torch.Tensor]:
    return (tensor[number] for tensor in tensors_in(vectors))


def test_relation_vectors_are_one_linear_map_per_relation() -> None:
    """Eq. 5: query_relation @ W_r + b_r."""
    projection = RelationProjection(ModelConfig(hidden_dim=4), 6)
    query_relation = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    vectors = projection(query_relation)
    assert vectors.query_key is not None
    assert projection.query_key is not None
    maps = [projection.query_key, *projection.value]
    for result, linear in zip(tensors_in(vectors), maps, strict=True):
        assert result.shape == (3, 6, 4)
        for relation in range(6):
            rows = slice(4 * relation, 4 * relation + 4)
            weight, bias = linear.weight[rows], linear.bias[rows]
            torch.testing.assert_close(result[:, relation], query_relation @ weight.T + bias)


def test_value_hops_have_vectors_of_their_own_and_query_hops_share_theirs(
    encoder: TableEncoder,
) -> None:
    vectors = encoder(torch.tensor([3, 0, 3]))
    assert len(vectors) == 2
    for layer in vectors:
        assert layer.query_key is not None
        assert len(layer.value) == 3
    assert len({tensor.data_ptr() for tensor in tensors_in(vectors)}) == 8


@pytest.mark.parametrize(
    "settings", [{"attention": False}, {"query_stream": False}, {"num_query_key_hops": 0}], ids=str
)
def test_without_hops_to_take_there_are_no_query_vectors(settings: dict[str, object]) -> None:
    config = ModelConfig.model_validate({"hidden_dim": 8, "num_layers": 1, **settings})
    encoder = TableEncoder(config, 4)
    (layer,) = encoder(torch.tensor([0]))
    assert layer.query_key is None
    assert len(layer.value) == config.num_value_hops
    assert not any("query_key" in name for name, _ in encoder.named_parameters())


def test_permuted_relations_do_what_the_other_does(encoder: TableEncoder) -> None:
    """Both as the query's relation and as the relation of an edge."""
    permuted = encoder(torch.tensor([0, 1, 13]), permutation=PERMUTATION)
    plain = encoder(torch.tensor([2, 1, 11]))
    for ours, theirs in zip(tensors_in(permuted), tensors_in(plain), strict=True):
        assert torch.equal(ours, theirs[:, PERMUTATION])
    nothing = encoder(torch.tensor([0, 1, 13]), permutation=torch.arange(NUM_RELATIONS))
    same = encoder(torch.tensor([0, 1, 13]))
    assert all(map(torch.equal, tensors_in(nothing), tensors_in(same)))


def test_bits_do_not_depend_on_which_relations_are_encoded_together(encoder: TableEncoder) -> None:
    everything = encode_invariantly(encoder, torch.arange(NUM_RELATIONS))
    for relations in ([5], [5, 21], [20, 5, 0], list(range(9)), [7] * 16):
        some = encode_invariantly(encoder, torch.tensor(relations))
        for number, relation in enumerate(relations):
            assert all(map(torch.equal, row(some, number), row(everything, relation)))


def test_vectors_are_those_of_the_encoder_but_for_rounding(encoder: TableEncoder) -> None:
    relations = torch.arange(NUM_RELATIONS)
    pairs = zip(
        tensors_in(encode_invariantly(encoder, relations)),
        tensors_in(encoder(relations)),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)


def test_gradients_reach_every_weight_of_an_encoder(encoder: TableEncoder) -> None:
    encoder.zero_grad()
    vectors = encode_invariantly(encoder, torch.tensor([0, 4]))
    sum(tensor.square().sum() for tensor in tensors_in(vectors)).backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_the_table_is_a_relation_encoder(encoder: TableEncoder) -> None:
    assert isinstance(encoder, RelationEncoder)
