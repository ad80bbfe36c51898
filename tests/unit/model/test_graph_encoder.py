import pytest
import torch
from torch import Tensor

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.relation_graph import RelationGraph, relation_graph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.config import ModelConfig
from knowformer.model.graph_encoder import GraphEncoder
from knowformer.model.knowformer import KnowFormer
from knowformer.model.relation_encoder import RelationEncoder, encode_invariantly
from knowformer.model.weights import tensors_in
from knowformer.scoring.scorer import Scorer

TRIPLES = [
    (f"{who}{family}", relation, f"{whom}{family}")
    for family in range(4)
    for who, relation, whom in (
        ("ann", "parent", "bob"),
        ("bob", "parent", "cy"),
        ("ann", "grandparent", "cy"),
        ("bob", "married", "dee"),
        ("dee", "married", "bob"),
    )
]


def make_model(*, width: int = 16) -> KnowFormer:
    config = ModelConfig(
        hidden_dim=width, num_layers=2, num_query_key_hops=1, relation_encoder="graph"
    )
    return KnowFormer.initialized(config, Vocabulary([], kind="relation"))


@pytest.fixture(scope="module")
def encoder() -> GraphEncoder:
    encoder = make_model().encoder
    assert isinstance(encoder, GraphEncoder)
    return encoder


def meetings(triples: list[tuple[str, str, str]]) -> RelationGraph:
    return relation_graph(KnowledgeGraph.from_triples(triples).adjacency)


def scores(graph: KnowledgeGraph, *, double: bool = False) -> Tensor:
    model = make_model()
    number = 2 * len(graph.relations)
    heads = torch.full((number,), graph.entities.id("bob1"))
    scorer = Scorer(model.double() if double else model, graph, seed=0)
    return scorer.score(heads, torch.arange(number)).dense()


def test_it_is_a_relation_encoder(encoder: GraphEncoder) -> None:
    assert isinstance(encoder, RelationEncoder)


def test_vectors_of_every_relation_for_each_layer_and_hop(encoder: GraphEncoder) -> None:
    vectors = encoder(torch.tensor([0, 5, 2]), meetings(TRIPLES))
    assert [len(layer.value) for layer in vectors] == [3, 3]
    assert {tensor.shape for tensor in tensors_in(vectors)} == {(3, 6, 16)}


def test_bits_do_not_depend_on_which_relations_are_encoded_together(encoder: GraphEncoder) -> None:
    graph = meetings(TRIPLES)
    everything = encode_invariantly(encoder, torch.arange(6), graph)
    for relations in ([4], [5, 1], [2, 2, 0]):
        some = encode_invariantly(encoder, torch.tensor(relations), graph)
        for ours, theirs in zip(tensors_in(some), tensors_in(everything), strict=True):
            assert torch.equal(ours, theirs[relations])


def test_gradients_reach_every_weight_that_a_meeting_uses(encoder: GraphEncoder) -> None:
    encoder.zero_grad()
    graph = meetings(TRIPLES)
    vectors = encoder(torch.arange(6), graph)
    sum(tensor.square().sum() for tensor in tensors_in(vectors)).backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_names_of_relations_change_nothing() -> None:
    renamed = {"parent": "zzz", "grandparent": "aaa", "married": "mmm"}
    others = [(head, renamed[relation], tail) for head, relation, tail in TRIPLES]
    own, theirs = (scores(KnowledgeGraph.from_triples(t)) for t in (TRIPLES, others))
    assert torch.equal(own, theirs)


def test_numbers_of_relations_change_nothing_but_rounding() -> None:
    graph = KnowledgeGraph.from_triples(TRIPLES)
    turned = graph.with_relations(Vocabulary(reversed(graph.relations.names), kind="relation"))
    own, theirs = scores(graph, double=True), scores(turned, double=True)
    torch.testing.assert_close(own, theirs[[2, 1, 0, 5, 4, 3]], rtol=1e-9, atol=1e-9)


def test_a_graph_beside_it_changes_nothing() -> None:
    """Relations that never meet do not see each other: graphs can be trained on side by side."""
    graph = KnowledgeGraph.from_triples(TRIPLES)
    other = [("x", "likes", "y"), ("y", "likes", "z"), ("x", "hates", "z")]
    both = KnowledgeGraph.from_triples([*TRIPLES, *other])
    encoder = make_model().encoder
    own, theirs = (
        tensors_in(encode_invariantly(encoder, torch.tensor([1]), relation_graph(g.adjacency)))
        for g in (graph, both)
    )
    for alone, beside in zip(own, theirs, strict=True):
        assert torch.equal(alone, beside[:, [0, 1, 2, 5, 6, 7]])
        assert not beside[:, [3, 4, 8, 9]].any()


def test_the_marked_relation_tells_the_others_apart(encoder: GraphEncoder) -> None:
    first, second = (encoder(torch.tensor([r]), meetings(TRIPLES)) for r in (0, 1))
    assert not torch.allclose(first[0].value[0], second[0].value[0])


def test_a_relation_with_one_fact_and_one_without_any_are_encoded(encoder: GraphEncoder) -> None:
    graph = KnowledgeGraph.from_triples(
        [("a", "once", "b")], relations=Vocabulary(["once", "never"], kind="relation")
    )
    for tensor in tensors_in(encoder(torch.arange(4), relation_graph(graph.adjacency))):
        assert tensor.isfinite().all()
