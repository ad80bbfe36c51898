"""The one way to run the model, against the paper's algorithm written down with torch's modules."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import Edges, QueryView
from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.layer import KnowFormerLayer
from knowformer.model.message_passing import Hop
from knowformer.model.noise import identity_noise
from knowformer.model.relation_encoder import RelationProjection
from knowformer.model.run import FirstStates, Probe, centred, query_key_vectors, run

HEADS, RELATIONS = torch.tensor([0, 3, 3]), torch.tensor([1, 1, 4])
ABLATIONS: list[dict[str, object]] = [
    {},
    {"attention": False},
    {"query_stream": False},
    {"value_stream": False},
    {"similarity": "exponential"},
    {"centred_attention": True},
    {"num_query_key_hops": 0},
    {"num_value_hops": 0},
]
each_preset = pytest.mark.parametrize("preset", PRESETS)
each_ablation = pytest.mark.parametrize("ablation", ABLATIONS, ids=str)


def build(graph: KnowledgeGraph, **settings: object) -> KnowFormer:
    """Returns a small model in double precision, every weight away from its usual start."""
    small = {"hidden_dim": 8, "num_layers": 2, "num_heads": 2, **settings}
    model = KnowFormer(ModelConfig.model_validate(small), 2 * len(graph.relations))
    draw = torch.Generator().manual_seed(0)
    initialize(model, generator=draw)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, generator=draw)
    return model.double()


def noise_of(model: KnowFormer, graph: KnowledgeGraph) -> Tensor:
    return identity_noise(model.config, graph.entity_keys, seed=0).double()


def scores_of(model: KnowFormer, graph: KnowledgeGraph, **how: object) -> Tensor:
    view = QueryView.whole(graph.adjacency.edges, HEADS)
    weights = model.pack(noise_of(model, graph))
    return run(weights, view, model.encoder(RELATIONS), model.backend, **how)


# ---- the algorithm -------------------------------------------------------------------------------


def plain_scores(
    model: KnowFormer, edges: Edges, head: int, relation: int, noise: Tensor
) -> Tensor:
    """Algorithm 1 for one query, module by module."""
    query_relation = model.encoder.query_relations.weight[relation]
    states = torch.zeros(edges.num_entities, model.config.hidden_dim, dtype=torch.double)
    mark = torch.zeros_like(states)
    mark[head] = 1.0
    for layer, projection, epsilon in zip(
        model.typed_layers(), model.encoder.layers, noise, strict=True
    ):
        assert isinstance(projection, RelationProjection)
        stream = layer.value_stream
        values = stream.second(stream.first(torch.cat([states, mark], 1)).relu())
        for hop, project in zip(stream.hops, projection.value, strict=True):
            values = plain_hop(hop, values, project(query_relation), edges)
        gathered = values
        if model.config.attention:
            query_key, stream = states, layer.query_key_stream
            if stream is not None:
                query_key = stream.second(stream.first(torch.cat([states, epsilon], 1)).relu())
                for hop in stream.hops:
                    assert projection.query_key is not None
                    vectors = projection.query_key(query_relation)
                    query_key = plain_hop(hop, query_key, vectors, edges)
            gathered = plain_attention(layer, query_key, values)
        a = layer.attention_norm(states + gathered)
        states = layer.output_norm(a + layer.contract(layer.expand(a).relu()))
    return model.score_last(model.score_hidden(states).relu())[:, 0]


def plain_hop(hop: torch.nn.Module, states: Tensor, vectors: Tensor, edges: Edges) -> Tensor:
    assert isinstance(hop, Hop)
    of_relation = vectors.view(edges.num_relations, -1)
    receiver = torch.repeat_interleave(edges.offsets.diff())
    update = hop.self_weight * states
    update = update.index_add(0, receiver, states[edges.sender] * of_relation[edges.relation])
    for number, linear in enumerate(hop.update):
        update = linear(update.relu() if number else update)
    return update if hop.norm is None else states + hop.norm(update)


def plain_attention(layer: KnowFormerLayer, query_key: Tensor, values: Tensor) -> Tensor:
    assert layer.to_query_key is not None
    heads = []
    q, k = layer.to_query_key(query_key).chunk(2, -1)
    if layer.config.centred_attention:
        q, k = q - q.mean(0), k - k.mean(0)
    for q_, k_, v in zip(
        *(t.chunk(layer.config.num_heads, -1) for t in (q, k, values)), strict=True
    ):
        dots = normalize(q_, dim=-1) @ normalize(k_, dim=-1).T
        kappa = dots.exp() if layer.config.similarity == "exponential" else 1 + dots
        count = len(v)
        heads.append((count * v + kappa @ v) / (count + kappa.sum(1, keepdim=True)))
    return torch.cat(heads, 1)


@each_ablation
@each_preset
def test_a_run_is_the_papers_algorithm(
    family: KnowledgeGraph, preset: str, ablation: dict[str, object]
) -> None:
    model = build(family, **{**PRESETS[preset], "num_heads": 2, **ablation})
    noise = noise_of(model, family)
    queries = zip(HEADS.tolist(), RELATIONS.tolist(), strict=True)
    plain = [plain_scores(model, family.adjacency.edges, *query, noise) for query in queries]
    torch.testing.assert_close(scores_of(model, family), torch.cat(plain))


@pytest.mark.parametrize("switch", ["attention", "query_stream", "value_stream"])
def test_each_part_makes_a_difference(family: KnowledgeGraph, switch: str) -> None:
    whole, less = build(family), build(family, **{switch: False})
    state = whole.state_dict()
    less.load_state_dict({name: state[name] for name in less.state_dict()})
    assert not torch.allclose(scores_of(whole, family), scores_of(less, family))


def test_centred_in_a_ragged_batch_each_query_has_its_own_mean(family: KnowledgeGraph) -> None:
    edges = family.adjacency.edges
    parts = [QueryView.whole(edges, HEADS[:1]), QueryView.whole(edges, HEADS[1:])]
    joined = QueryView.join(parts)
    states = torch.randn(joined.num_rows, 4, generator=torch.Generator().manual_seed(1))
    found = centred(states, joined)
    for one in found.view(len(HEADS), -1, 4):
        torch.testing.assert_close(one.mean(0), torch.zeros(4), atol=1e-6, rtol=0)
    one, *_ = states.view(len(HEADS), -1, 4)
    torch.testing.assert_close(found[: edges.num_entities], one - one.mean(0))


def test_centred_attention_cannot_fall_into_one_direction(family: KnowledgeGraph) -> None:
    probe = Probe()
    scores_of(build(family, centred_attention=True), family, probe=probe)
    for states in probe.query_key_states:
        each = states.view(len(HEADS), -1, states.shape[1])
        torch.testing.assert_close(each.mean(1), torch.zeros_like(each[:, 0]))


def test_without_hops_and_attention_only_the_head_stands_out(family: KnowledgeGraph) -> None:
    model = build(family, value_stream=False, attention=False)
    for scores, head in zip(scores_of(model, family).view(3, -1), HEADS.tolist(), strict=True):
        others = torch.cat([scores[:head], scores[head + 1 :]])
        torch.testing.assert_close(others, others[:1].expand_as(others))
        assert not torch.allclose(scores[head], others[0])


# ---- graphs of different sizes -------------------------------------------------------------------


@each_ablation
def test_queries_that_see_different_graphs_score_what_they_score_alone(
    random_graph: Callable[..., KnowledgeGraph], ablation: dict[str, object]
) -> None:
    graphs = [random_graph(1, num_entities=7), random_graph(2), random_graph(3, num_entities=1)]
    model = build(graphs[0], **ablation)
    heads, relations = [3, 11, 0], torch.tensor([0, 2, 0])
    views = [
        QueryView.whole(graph.adjacency.edges, torch.tensor([head]))
        for graph, head in zip(graphs, heads, strict=True)
    ]
    noise = [noise_of(model, graph) for graph in graphs]
    together = model(QueryView.join(views), relations, identity_noise=torch.cat(noise, 1))
    alone = [
        model(view, relations[number : number + 1], identity_noise=noise[number])
        for number, view in enumerate(views)
    ]
    torch.testing.assert_close(together, torch.cat(alone))


# ---- first states, dropout, probes ---------------------------------------------------------------


def first_streams(model: KnowFormer, graph: KnowledgeGraph) -> FirstStates:
    layer, vectors = model.pack(noise_of(model, graph)).layers[0], model.encoder(RELATIONS)
    view = QueryView.whole(graph.adjacency.edges, HEADS)
    stream, of_hops = model.backend.stream, query_key_vectors(layer, vectors[0])
    value = stream(None, layer.value, vectors[0].value, view)
    if layer.query_key is None:
        return FirstStates(None, value)
    return FirstStates(stream(None, layer.query_key, of_hops, view), value)


@pytest.mark.parametrize(
    "ablation", [{}, {"num_query_key_hops": 0}, {"query_stream": False}], ids=str
)
def test_streams_that_are_there_already_are_taken_for_those_of_the_first_layer(
    family: KnowledgeGraph, ablation: dict[str, object]
) -> None:
    model = build(family, **ablation)
    first = first_streams(model, family)
    expected = scores_of(model, family)
    for given in (first, FirstStates(query_key=first.query_key), FirstStates(value=first.value)):
        assert torch.equal(scores_of(model, family, first=given), expected)
    assert first.value is not None
    other = FirstStates(value=first.value.flip(1))
    assert not torch.allclose(scores_of(model, family, first=other), expected)


@pytest.mark.parametrize("ablation", [{}, {"attention": False}], ids=str)
def test_dropout_follows_its_generator_and_acts_only_with_one(
    family: KnowledgeGraph, ablation: dict[str, object]
) -> None:
    model = build(family, dropout=0.5, **ablation)
    plain = scores_of(model, family)

    def dropped(seed: int) -> Tensor:
        return scores_of(model, family, dropout=np.random.default_rng(seed))

    assert torch.equal(scores_of(model.train(), family), plain)
    assert torch.equal(dropped(3), dropped(3))
    assert not torch.equal(dropped(3), plain)
    assert not torch.equal(dropped(3), dropped(4))


def test_nothing_is_dropped_at_rate_zero(family: KnowledgeGraph) -> None:
    model = build(family, dropout=0.0)
    random = np.random.default_rng(3)
    assert torch.equal(scores_of(model, family, dropout=random), scores_of(model, family))


def test_a_probe_keeps_what_queries_and_keys_are_made_of(family: KnowledgeGraph) -> None:
    model = build(family)
    first = first_streams(model, family)
    probe = Probe()
    assert torch.equal(scores_of(model, family, probe=probe), scores_of(model, family))
    assert len(probe.query_key_states) == 2
    assert first.query_key is not None
    assert torch.equal(probe.query_key_states[0], first.query_key)


def test_a_probe_weighs_the_messages_of_one_hop_or_the_entities_of_one_layer(
    family: KnowledgeGraph,
) -> None:
    model, edges = build(family), family.adjacency.edges
    plain = scores_of(model, family)
    ones = torch.ones(len(edges.message), dtype=torch.double)
    messages = [[ones] * model.config.num_value_hops for _ in range(2)]
    rows = torch.ones(3 * edges.num_entities, 2, dtype=torch.double)
    torch.testing.assert_close(scores_of(model, family, probe=Probe(messages)), plain)
    torch.testing.assert_close(scores_of(model, family, probe=Probe(attended=[rows] * 2)), plain)
    for layer in range(2):
        fewer = [list(of_layer) for of_layer in messages]
        fewer[layer][1] = 0.5 * ones
        assert not torch.allclose(scores_of(model, family, probe=Probe(fewer)), plain)
        less = [rows, rows]
        less[layer] = 0.5 * rows
        assert not torch.allclose(scores_of(model, family, probe=Probe(attended=less)), plain)
