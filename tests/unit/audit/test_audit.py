"""An audit against what is plain to see in small graphs."""

from collections.abc import Callable

import networkx
import pytest

from knowformer.audit.findings import Finding
from knowformer.audit.text import audit_markdown
from knowformer.data.dataset import Dataset
from knowformer.data.loading import load_dataset
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.importing import audit, dataset_from_pandas, make_dataset, to_networkx


def build(**splits: list[tuple[str, str, str]]) -> Dataset:
    import pandas

    rows = [(*fact, name) for name, facts in splits.items() for fact in facts]
    return dataset_from_pandas(
        pandas.DataFrame(rows, columns=["head", "relation", "tail", "split"])
    )


def finding(dataset: Dataset, topic: str) -> Finding:
    return next(f for f in audit(dataset).findings if f.topic == topic)


@pytest.mark.parametrize("seed", range(4))
def test_structure_agrees_with_networkx(
    random_graph: Callable[..., KnowledgeGraph], seed: int
) -> None:
    dataset = make_dataset(random_graph(seed, num_entities=30, num_facts=40), seed=seed)
    found = audit(dataset)
    graph = to_networkx(dataset)
    parts = list(networkx.weakly_connected_components(graph))
    assert found.components.number == len(parts)
    assert found.components.largest == max(map(len, parts))
    degrees = dict(graph.degree())
    assert found.degrees.most == max(degrees.values())
    assert found.degrees.hubs[0].degree == degrees[found.degrees.hubs[0].entity]
    assert found.degrees.num_once == sum(d == 1 for d in degrees.values())
    assert found.self_loops == networkx.number_of_selfloops(graph)
    assert sum(row["facts"] for row in found.categories.values()) == sum(found.facts.values())


def test_held_out_facts_are_looked_at_against_the_evidence() -> None:
    train = [(f"a{i}", "r", f"b{i}") for i in range(10)] + [("x", "r", "y")]
    repeated = [(f"b{i}", "s", f"a{i}") for i in range(5, 10)]
    test = [("b0", "s", "a0"), ("a1", "s", "b1"), ("new", "r", "x")]
    dataset = build(train=train + repeated, valid=[("b3", "s", "a4")], test=test)
    held = audit(dataset).held_out["test"]
    assert (held.facts, held.linked, held.leaked) == (3, 2, 0)  # 6 of 8 are repeated: too few
    assert (held.unseen_entities, held.with_unseen) == (1, 1)
    more = [(f"b{i}", "s", f"a{i}") for i in range(1, 5)]
    held = audit(
        build(train=train + repeated + more, valid=[("b3", "s", "a4")], test=test)
    ).held_out
    assert held["test"].leaked == 1


def test_links_that_only_training_facts_have_are_a_warning() -> None:
    pairs = [(f"a{i}", f"b{i}") for i in range(10)]
    train = [(a, relation, b) for a, b in pairs for relation in ("r", "s")] + [("a0", "t", "b1")]
    found = audit(build(train=train, valid=[("a1", "t", "b2")], test=[("a2", "t", "b3")]))
    assert found.linked_in_training == 20
    warning = next(f for f in found.findings if f.topic == "links in training")
    assert warning.level == "warning"
    assert warning.found.startswith("95.2% of the training facts")
    assert "training.hide=links" in warning.advice
    found = audit(build(train=train, valid=[("b1", "t", "a1")], test=[("a2", "t", "b3")]))
    assert "links in training" not in [f.topic for f in found.findings]


def test_a_fact_in_two_parts_is_a_warning(ring: Dataset) -> None:
    from dataclasses import replace

    twice = replace(ring, test=replace(ring.test, facts=ring.train.facts[:2]))
    found = finding(twice, "facts in two splits")
    assert found.level == "warning"
    assert found.found.startswith("2 of 2 test facts")


def test_an_audit_prints_well_and_gives_a_frame() -> None:
    found = audit("nations")
    assert str(found) == found._repr_markdown_() == audit_markdown(found)
    assert repr(found).startswith("Audit(nations: 1 warning, ")
    frame = found.to_pandas().set_index("relation")
    assert frame.loc["embassy", ["category", "facts"]].tolist() == ["n-n", 141]
    assert len(frame) == 55


def test_every_finding_says_why_and_what_to_do() -> None:
    for name in ("nations", "kinship", "umls-pykeen"):
        found = audit(load_dataset(name))
        for item in found.findings:
            assert item.found.endswith(".")
            assert item.level == "good" or (item.why and item.advice)
        page = audit_markdown(found)
        assert all(item.found in page for item in found.findings)
        levels = [item.level for item in found.findings]
        assert levels == sorted(levels, key=["warning", "note", "good"].index)


@pytest.mark.slow
@pytest.mark.dataset
def test_known_benchmarks_are_judged_as_the_field_judges_them() -> None:
    from knowformer.data import catalog

    for name in ("fb15k-237", "wn18rr"):
        if catalog.locate(catalog.find(name)) is None:
            pytest.skip(f"{name} is not here")
    clean = audit(load_dataset("fb15k-237"))
    assert clean.held_out["test"].linked == clean.held_out["test"].leaked == 0
    assert "links in training" in [f.topic for f in clean.findings if f.level == "warning"]
    leaky = audit(load_dataset("wn18rr"))  # _derivationally_related_form holds both ways
    assert "links in training" not in [f.topic for f in leaky.findings]
    assert 0.3 < leaky.held_out["test"].leaked / leaky.held_out["test"].facts < 0.4
