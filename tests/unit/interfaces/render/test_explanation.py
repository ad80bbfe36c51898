import io
from collections.abc import Callable

import pytest
import torch
from rich.console import Console

from knowformer.data.dataset import Dataset
from knowformer.data.labels import Labels
from knowformer.explanation.check.benchmark import measure_test_set
from knowformer.explanation.explainer import Explainer
from knowformer.explanation.explanation import signed
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.interfaces.render.explanation import render_explanation, render_faithfulness
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.queries.known_answers import KnownAnswers

SMALL = ModelConfig(hidden_dim=8, num_heads=2, num_layers=1, num_value_hops=2)


@pytest.fixture
def shown() -> Callable[[object], str]:
    def show(result: object) -> str:
        console = Console(file=io.StringIO(), width=160)
        console.print(result)
        return console.file.getvalue()

    return show


def small_model(num_relations: int) -> KnowFormer:
    model = KnowFormer(SMALL, 2 * num_relations).eval()
    initialize(model, generator=torch.Generator().manual_seed(0))
    return model


def test_an_explanation_shows_its_paths_in_readable_names(
    family: KnowledgeGraph, shown: Callable[[object], str]
):
    model, known = small_model(len(family.relations)), KnownAnswers.of(family)
    finder = EvidenceFinder(model, family, known, seed=0)
    labels = Labels({"bob": "Bob [Smith]"}, {"mother_of": "is mother of"})
    explanation = Explainer(finder, labels=labels, seed=0).explain("eve", "mother_of", "bob")
    text = shown(render_explanation(explanation))
    assert text.startswith("(eve, is mother of, ?) Bob [Smith]\n")
    assert explanation.place() in text
    assert all(signed(path.loss.probability) in text for path in explanation.paths)
    assert "lost" in text
    assert ("Prototypes: attended" in text) is explanation.prototypes_matter
    assert "—is mother of→" in text or "←is mother of—" in text
    assert "layer" not in text
    assert "layer" in shown(render_explanation(explanation, by_head=True))


def test_an_answer_that_the_model_did_not_see_is_shown_with_the_reason(
    random_graph: Callable[..., KnowledgeGraph], shown: Callable[[object], str]
):
    graph = random_graph(2, num_entities=30, num_facts=60)
    model = KnowFormer(SMALL.model_copy(update={"view_size": 5}), 2 * len(graph.relations)).eval()
    initialize(model, generator=torch.Generator().manual_seed(0))
    finder = EvidenceFinder(model, graph, KnownAnswers.of(graph), seed=0)
    seen = set(finder.sight.of(finder.prediction(0, 1, 1)).entities.tolist())
    unseen = next(entity for entity in range(30) if entity not in seen)
    explainer = Explainer(finder, labels=Labels(), seed=0)
    explanation = explainer.explain("e0", "r1", f"e{unseen}")
    text = " ".join(shown(render_explanation(explanation, by_head=True)).split())
    assert f"The model did not see e{unseen}: this question shows it 5 of 30 entities" in text
    assert "attends to none" in text


def test_a_report_shows_every_curve_and_how_it_was_made(
    ring: Dataset, shown: Callable[[object], str]
):
    report = measure_test_set(small_model(len(ring.relations)), ring, 2, seed=0, num_draws=2)
    text = shown(render_faithfulness(report))
    assert "2 test predictions explained" in text
    assert text.count("Deletion: ") == text.count("Insertion: ") == 2
    for curve in report.curves:
        if curve.measure in {"log_odds", "reciprocal_rank"}:
            assert all(f"{point.difference:+.4f}" in text for point in curve.points)
