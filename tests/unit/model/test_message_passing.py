import torch

from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.message_passing import Hop, RelationProjection
from knowformer.model.weights import tensors_in


def test_relation_vectors_are_one_linear_map_per_relation() -> None:
    """Eq. 5: query_relation @ W_r + b_r."""
    vectors = RelationProjection(ModelConfig(hidden_dim=4), 6)
    query_relation = torch.randn(3, 4)
    result = vectors(query_relation)
    assert result.shape == (3, 6, 4)
    for relation in range(6):
        rows = slice(4 * relation, 4 * relation + 4)
        weight, bias = vectors.project.weight[rows], vectors.project.bias[rows]
        torch.testing.assert_close(result[:, relation], query_relation @ weight.T + bias)


def test_a_hop_hands_its_own_weights_to_the_kernel() -> None:
    released = Hop(ModelConfig.model_validate(PRESETS["released"])).weights()
    assert released.maps.shape[0] == 2
    assert released.norm
    hop = Hop(ModelConfig.model_validate(PRESETS["paper"]))
    for parameter in hop.parameters():
        torch.nn.init.normal_(parameter)
    paper = hop.weights()
    assert not paper.norm
    assert paper.rows.shape[0] == 4
    assert torch.equal(paper.rows[0], hop.self_weight)
    for number, linear in enumerate(hop.update):
        assert torch.equal(paper.maps[number], linear.weight.T)
        assert torch.equal(paper.rows[1 + number], linear.bias)


def test_relations_that_take_each_others_part_do_what_the_other_does() -> None:
    model = KnowFormer(ModelConfig(hidden_dim=4, num_heads=2), 6)
    initialize(model, generator=torch.Generator().manual_seed(0))
    parts = torch.tensor([2, 1, 0, 5, 4, 3])
    swapped = model.relation_vectors(torch.tensor([0, 1]), parts=parts)
    plain = model.relation_vectors(torch.tensor([2, 1]))
    for ours, theirs in zip(tensors_in(swapped), tensors_in(plain), strict=True):
        assert torch.equal(ours, theirs[:, parts])
