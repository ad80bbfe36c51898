from collections.abc import Callable

import pytest
import torch

from knowformer.explanation.find import tracing
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.kernels.interface import QueryView
from knowformer.model.noise import identity_noise
from knowformer.model.run import Probe
from knowformer.scoring.scorer import Scorer
from tests.unit.explanation.conftest import SETTINGS

Finder = Callable[..., EvidenceFinder]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_traced_model_gives_the_scores_of_the_model_itself(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder, settings: dict[str, object]
) -> None:
    graph = random_graph(1)
    found = finder(graph, **settings)
    prediction = found.prediction(2, 1, 5)
    trace = found.tracer.trace(prediction, EvidenceGraph(graph.adjacency.edges))
    own = Scorer(found.tracer.model, graph, seed=0)
    expected = own.score(torch.tensor([2]), torch.tensor([1])).dense()[0]
    torch.testing.assert_close(trace.scores.values, expected, rtol=1e-10, atol=1e-10)
    weighed = found.tracer.score(
        prediction, EvidenceGraph(graph.adjacency.edges), torch.ones(len(expected))
    )
    torch.testing.assert_close(weighed.values, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_in_a_view_it_gives_the_scores_of_the_model_itself(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder, settings: dict[str, object]
) -> None:
    graph = random_graph(1)
    found = finder(graph, view_size=7, **settings)
    prediction = found.prediction(2, 1, 5)
    assert not graph.adjacency.has_fact(torch.tensor([[2, 1, 5]])).any()  # nothing is hidden
    own = Scorer(found.tracer.model, graph, seed=0)
    expected = own.score(torch.tensor([2]), torch.tensor([1]), outside=True)
    scores = found.tracer.score(prediction, found.sight.of(prediction))
    assert scores.entities is not None
    assert expected.entities is not None
    assert scores.entities.tolist() == expected.entities.tolist()
    assert len(scores.entities) == 7
    torch.testing.assert_close(scores.values, expected.values, rtol=1e-10, atol=1e-10)
    assert scores.outside is not None
    assert expected.outside is not None
    assert scores.outside.entities.tolist() == expected.outside.entities.tolist()


def test_a_traced_model_agrees_with_fused_kernels(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder
) -> None:
    graph = random_graph(1)
    found = finder(graph, num_heads=4)
    model = found.tracer.model.float()
    assert model.backend.is_batch_invariant(width=16, num_heads=4, similarity="linear")
    expected = Scorer(model, graph, seed=0).score(torch.tensor([2]), torch.tensor([1])).dense()[0]
    trace = found.tracer.trace(found.prediction(2, 1, 5), EvidenceGraph(graph.adjacency.edges))
    assert trace.scores.values.dtype == expected.dtype == torch.float32
    torch.testing.assert_close(trace.scores.values, expected, rtol=1e-4, atol=1e-4)


def test_messages_at_full_strength_give_the_scores_of_the_model_itself(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder
) -> None:
    graph = random_graph(2)
    found = finder(graph)
    prediction = found.prediction(0, 3, 4)
    scores, hops = found.tracer.hop_gradients(prediction, EvidenceGraph(graph.adjacency.edges))
    expected = found.tracer.score(prediction, EvidenceGraph(graph.adjacency.edges)).values
    torch.testing.assert_close(scores, expected, rtol=1e-10, atol=1e-10)
    assert hops.shape == (4, graph.adjacency.num_edges)  # two layers of two value hops


def test_a_message_without_weight_is_a_message_that_was_not_sent(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder
) -> None:
    graph = random_graph(3)
    found = finder(graph, attention=False)
    prediction, seen = found.prediction(0, 3, 4), EvidenceGraph(graph.adjacency.edges)
    silent, _ = found.tracer.hop_gradients(prediction, seen, strength=0.0)
    none = torch.zeros(graph.adjacency.num_edges, dtype=torch.bool)
    nothing = EvidenceGraph(graph.adjacency.edges.keep(none))
    torch.testing.assert_close(silent, found.tracer.score(prediction, nothing).values)


def test_a_gradient_is_the_slope_of_the_log_odds_in_the_strength_of_all_messages(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder
) -> None:
    graph = random_graph(6)
    found = finder(graph)
    prediction, seen = found.prediction(0, 3, 4), EvidenceGraph(graph.adjacency.edges)
    step = 1e-6
    above, below = (
        prediction.log_odds(found.tracer.hop_gradients(prediction, seen, strength=strength)[0])
        for strength in (0.7 + step, 0.7 - step)
    )
    _, hops = found.tracer.hop_gradients(prediction, seen, strength=0.7)
    torch.testing.assert_close(hops.sum(), (above - below) / (2 * step), rtol=1e-5, atol=1e-7)


def test_gradients_of_messages_add_up_to_what_all_messages_bring(
    random_graph: Callable[..., KnowledgeGraph],
    finder: Finder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "NUM_POINTS", 100)
    graph = random_graph(4)
    found = finder(graph)
    prediction = found.prediction(0, 3, 4)
    seen = EvidenceGraph(graph.adjacency.edges)
    brought = found.tracer.trace(prediction, seen).hops.sum()
    log_odds = [
        prediction.log_odds(found.tracer.hop_gradients(prediction, seen, strength=strength)[0])
        for strength in (1.0, 0.0)
    ]
    torch.testing.assert_close(brought, log_odds[0] - log_odds[1], rtol=0.02, atol=0.01)


@pytest.mark.parametrize("similarity", ["linear", "exponential", "random_features"])
def test_influence_is_the_slope_of_the_log_odds_in_the_weight_of_an_attended_entity(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder, similarity: str
) -> None:
    graph = random_graph(5)
    found = finder(graph, similarity=similarity)
    prediction = found.prediction(1, 0, 7)
    seen = EvidenceGraph(graph.adjacency.edges)
    rows = found.tracer.trace(prediction, seen).attention
    assert rows is not None
    step = 1e-5
    for entity in (0, 3, 11):
        slope = 0.0
        for sign in (1, -1):
            attended = torch.ones(len(graph.entities), dtype=torch.double)
            attended[entity] += sign * step
            scores = found.tracer.score(prediction, seen, attended)
            slope += sign * prediction.log_odds(scores.values).item() / (2 * step)
        assert rows.influence[:, :, entity].sum().item() == pytest.approx(slope, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("similarity", ["linear", "exponential"])
def test_lift_is_the_answers_attention_over_even_attention(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder, similarity: str
) -> None:
    graph = random_graph(5)
    found = finder(graph, similarity=similarity)
    model, probe = found.tracer.model, Probe()
    noise = identity_noise(model.config, graph.entity_keys, seed=0, draw="inference-0")
    view = QueryView.whole(graph.adjacency.edges, torch.tensor([1]))
    model(view, torch.tensor([0]), identity_noise=noise, probe=probe)
    rows = found.tracer.attention(found.prediction(1, 0, 7), EvidenceGraph(graph.adjacency.edges))
    assert rows is not None
    for number, (layer, states) in enumerate(
        zip(model.typed_layers(), probe.query_key_states, strict=True)
    ):
        assert layer.to_query_key is not None
        q, k = layer.to_query_key(states).chunk(2, -1)
        heads = zip(q.chunk(2, -1), k.chunk(2, -1), strict=True)
        for head, (q_head, k_head) in enumerate(heads):
            dots = torch.cosine_similarity(q_head[7:8], k_head, dim=-1)
            kappa = dots.exp() if similarity == "exponential" else 1 + dots
            torch.testing.assert_close(rows.lift[number, head], kappa / kappa.mean())


def test_a_model_without_attention_has_no_rows(
    random_graph: Callable[..., KnowledgeGraph], finder: Finder
) -> None:
    found = finder(random_graph(), attention=False)
    assert (
        found.tracer.trace(
            found.prediction(0, 0, 1), EvidenceGraph(found.graph.adjacency.edges)
        ).attention
        is None
    )


def test_a_graph_without_facts_is_traced(finder: Finder) -> None:
    names = (Vocabulary(["a", "b", "c"], kind="entity"), Vocabulary(["r"], kind="relation"))
    graph = KnowledgeGraph(*names, torch.zeros(0, 3, dtype=torch.long))
    found = finder(graph)
    evidence = found.find(found.prediction(0, 0, 1))
    assert evidence.paths == []
    assert evidence.trace.hops.shape == (4, 0)
