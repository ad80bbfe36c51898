import torch

from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.message_passing import Hop, RelationProjection


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
