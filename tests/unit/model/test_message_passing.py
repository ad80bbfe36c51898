import torch

from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.message_passing import Hop, RelationVectors


def test_relation_vectors_are_one_linear_map_per_relation() -> None:
    """Eq. 5: query_relation @ W_r + b_r."""
    vectors = RelationVectors(ModelConfig(hidden_dim=4), 6)
    query_relation = torch.randn(3, 4)
    result = vectors(query_relation)
    assert result.shape == (3, 6, 4)
    for relation in range(6):
        rows = slice(4 * relation, 4 * relation + 4)
        weight, bias = vectors.project.weight[rows], vectors.project.bias[rows]
        torch.testing.assert_close(result[:, relation], query_relation @ weight.T + bias)


def test_a_hop_hands_its_own_weights_to_the_kernel() -> None:
    released = Hop(ModelConfig.model_validate(PRESETS["released"])).weights()
    assert len(released.linear) == 2
    assert released.norm is not None
    paper_hop = Hop(ModelConfig.model_validate(PRESETS["paper"]))
    paper = paper_hop.weights()
    assert len(paper.linear) == 3
    assert paper.norm is None
    handed = {id(paper.self_weight)} | {id(tensor) for pair in paper.linear for tensor in pair}
    assert handed == {id(parameter) for parameter in paper_hop.parameters()}
