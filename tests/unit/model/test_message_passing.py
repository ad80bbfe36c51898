import torch

from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.message_passing import Hop, RelationProjection, lean_on_common


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


def test_a_relation_without_facts_does_what_all_relations_have_in_common() -> None:
    model = KnowFormer(ModelConfig(hidden_dim=4, num_heads=2, relation_prior=5), 6)
    initialize(model, generator=torch.Generator().manual_seed(0))
    model.count_relations(torch.tensor([0, 0, 10**9, 0, 0, 10**9]))
    vectors = model.relation_vectors(torch.tensor([0, 1, 2]))[0].value[0]
    assert torch.equal(vectors[:, 0], vectors[:, 1])
    assert torch.equal(vectors[:, 3], vectors[:, 4])
    assert not torch.equal(vectors[:, 0], vectors[:, 3])  # a relation is not an inverse
    assert not torch.equal(vectors[:, 0], vectors[:, 2])
    assert torch.equal(vectors[0], vectors[1])  # nor do they differ as the query's relation
    assert not torch.equal(vectors[0], vectors[2])


def test_few_facts_lie_between_none_and_many() -> None:
    own, common = torch.full((2, 1), 10.0), torch.ones(2, 1)
    trust = torch.tensor([[0.25], [1.0]])
    assert lean_on_common(own, common, trust).flatten().tolist() == [3.5, 11.0]


def test_without_a_prior_nothing_is_added() -> None:
    model = KnowFormer(ModelConfig(), 6)
    model.count_relations(torch.ones(6, dtype=torch.long))
    assert not any("common" in name or "trust" in name for name in model.state_dict())
