from pathlib import Path

import pytest
import torch

from knowformer import Reasoner
from knowformer.errors import BundleError, ConfigError, DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.pipeline import train
from knowformer.runs.folder import load_bundle, read_environment
from knowformer.runs.shipped import SHIPPED_FOLDER, no_graph, ship, shipped_for

FACTS = [
    (f"{who}{family}", relation, f"{whom}{family}")
    for family in range(6)
    for who, relation, whom in (
        ("ann", "parent", "bob"),
        ("bob", "parent", "cy"),
        ("ann", "grandparent", "cy"),
    )
]


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    """Whoever has a grandparent is clear; one such fact is missing."""
    return KnowledgeGraph.from_triples([fact for fact in FACTS if fact != FACTS[2]])


def test_the_shipped_model_is_small_and_has_no_facts() -> None:
    assert sum(file.stat().st_size for file in SHIPPED_FOLDER.iterdir()) < 2_000_000
    bundle = load_bundle(SHIPPED_FOLDER)
    assert bundle.fixed_relations is None
    assert not len(bundle.dataset.train.facts)


def test_it_answers_on_a_graph_that_it_has_never_seen(graph: KnowledgeGraph) -> None:
    asked = Reasoner.zero_shot(graph, threads=1).answer(
        head="ann0", relation="grandparent", new_only=True, k=1
    )
    assert asked.answers[0].name == "cy0"


def test_a_graph_in_the_place_of_a_run_is_answered_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("\n".join("\t".join(fact) for fact in FACTS), encoding="utf-8")
    with caplog.at_level("INFO"):
        reasoner = Reasoner.from_pretrained(path, threads=1)
    assert "not trained on this graph" in caplog.text
    assert len(reasoner.graph.facts) == len(FACTS)
    report = reasoner.evaluate()
    assert report.protocol.setting.startswith("inductive")
    assert "new too" in report.protocol.setting


def test_a_graph_too_small_to_be_split_is_answered_on() -> None:
    bundle = shipped_for(KnowledgeGraph.from_triples([("a", "likes", "b")]))
    assert not len(bundle.dataset.test.facts)
    assert len(Reasoner.from_pretrained(bundle).answer(head="a", relation="likes").answers) == 2


def test_without_a_graph_there_is_nothing_to_answer_on() -> None:
    with pytest.raises(DataError, match="Expected a graph to answer on"):
        Reasoner.from_pretrained("shipped")


def test_a_training_starts_from_it_whatever_the_relations(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    reasoner = train(
        graph,
        tmp_path / "run",
        settings={"training.max_epochs": 0.01, "training.learning_rate": 1e-9, "threads": 1},
        start_from="shipped",
        calibrate=False,
    )
    shipped = load_bundle(SHIPPED_FOLDER).model.state_dict()
    for name, weight in reasoner.model.state_dict().items():
        torch.testing.assert_close(weight, shipped[name], atol=1e-6, rtol=0)
    assert reasoner.was_trained_on_it


def test_a_model_ships_without_the_facts_that_it_was_trained_on(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    settings = {"training.max_epochs": 0.1, "model.hidden_dim": 16, "threads": 1}
    graph_model = settings | {"model.relation_encoder": "graph"}
    trained = train(graph, tmp_path / "run", settings=graph_model, calibrate=False)
    ship(tmp_path / "run", tmp_path / "shipped")
    bundle = load_bundle(tmp_path / "shipped")
    assert bundle.dataset.train.graph.same_as(no_graph())
    assert read_environment(tmp_path / "shipped") == read_environment(tmp_path / "run")
    again = Reasoner.from_pretrained(tmp_path / "shipped", graph=trained.graph)
    heads, relations = torch.tensor([0, 1]), torch.tensor([0, 1])
    ours, theirs = (each.score(heads, relations).dense() for each in (again, trained))
    assert torch.equal(ours, theirs)
    train(graph, tmp_path / "table", settings=settings, calibrate=False)
    with pytest.raises(ConfigError, match="relation_encoder"):
        ship(tmp_path / "table", tmp_path / "other")


def test_probabilities_are_fitted_to_a_graph_and_kept_in_a_run(tmp_path: Path) -> None:
    out = tmp_path / "untrained"
    zero_shot = Reasoner.zero_shot("nations", threads=1)
    asked = {"head": "usa", "relation": "treaties"}
    before = zero_shot.answer(**asked)
    zero_shot.calibrate(out)
    again = Reasoner.from_pretrained(out, threads=1)
    assert not again.was_trained_on_it
    assert "new too" in again.evaluate(num_facts=10).protocol.setting
    after = again.answer(**asked)
    assert after.answers == zero_shot.answer(**asked).answers
    assert [a.score for a in after.answers] == [a.score for a in before.answers]
    assert (before.probability_kind, after.probability_kind) == ("model", "calibrated")
    again.calibrate()  # like any run
    a_step = {"training.max_epochs": 0.01}
    trained = train(None, out, resume=True, settings=a_step, calibrate=False)
    assert trained.was_trained_on_it
    for name, weight in trained.model.state_dict().items():
        torch.testing.assert_close(weight, zero_shot.model.state_dict()[name], atol=0.01, rtol=0)


def test_the_shipped_model_keeps_no_probabilities_itself(tmp_path: Path) -> None:
    shipped = Reasoner.zero_shot("nations", threads=1)
    with pytest.raises(BundleError, match="a new run folder"):
        shipped.calibrate()
    (tmp_path / "config.toml").write_text("a run")
    with pytest.raises(BundleError, match="without a run"):
        shipped.calibrate(tmp_path)
    assert load_bundle(SHIPPED_FOLDER).calibration is None


def test_a_graph_too_small_to_fit_leaves_no_folder(tmp_path: Path, graph: KnowledgeGraph) -> None:
    with pytest.raises(DataError, match="at least 20"):
        Reasoner.zero_shot(graph, threads=1).calibrate(tmp_path / "run")
    assert not (tmp_path / "run").exists()
