import pytest
import torch

from knowformer.data.dataset import Dataset
from knowformer.data.mixture import mix
from knowformer.errors import DataError


def ring(name: str, size: int) -> Dataset:
    facts = [(f"e{i}", "next", f"e{(i + 1) % size}") for i in range(size)]
    facts += [(f"e{i}", "skip", f"e{(i + 2) % size}") for i in range(size)]
    valid = [(f"e{i}", "skip", f"e{(i + 3) % size}") for i in range(3)]
    test = [(f"e{i}", "next", f"e{(i + 3) % size}") for i in range(3)]
    return Dataset.from_triples(facts, valid, test, name=name)


def names(mixture: Dataset, split: str) -> set[tuple[str, str, str]]:
    chosen = mixture.split(split)
    entities, relations = chosen.graph.entities, chosen.graph.relations
    return {
        (entities.name(h), relations.names[r], entities.name(t))
        for h, r, t in chosen.facts.tolist()
    }


def test_graphs_stand_side_by_side_under_names_of_their_own() -> None:
    mixture = mix([ring("a", 5), ring("b", 7)])
    assert mixture.name == "a + b"
    assert len(mixture.train.graph.entities) == 12
    assert list(mixture.relations) == ["a/next", "a/skip", "b/next", "b/skip"]
    trained = names(mixture, "train")
    assert len(trained) == 24
    assert ("b/e6", "b/skip", "b/e1") in trained
    assert all(len({part.split("/", 1)[0] for part in fact}) == 1 for fact in trained)


def test_by_default_weights_are_chosen_on_the_graphs_that_are_trained_on() -> None:
    mixture = mix([ring("a", 5), ring("b", 7)])
    assert mixture.valid.graph is mixture.train.graph
    assert {head.split("/")[0] for head, _, _ in names(mixture, "valid")} == {"a", "b"}


def test_graphs_to_validate_on_are_not_trained_on() -> None:
    mixture = mix([ring("a", 5)], [ring("c", 6), ring("d", 8)])
    assert mixture.valid.graph is not mixture.train.graph
    assert {head[0] for head, _, _ in names(mixture, "train")} == {"a"}
    assert {head[0] for head, _, _ in names(mixture, "valid")} == {"c", "d"}
    assert {head[0] for head, _, _ in names(mixture, "test")} == {"c", "d"}
    # Predicted from the training facts of those graphs, filtered by all that is known of them.
    assert len(mixture.valid.graph.facts) == 28
    assert len(mixture.valid.known) == 40
    assert mixture.valid.graph.relations == mixture.relations


def test_each_graph_gives_so_many_facts_at_most_drawn_by_the_seed() -> None:
    graphs = [ring("c", 6), ring("d", 8)]
    one, again = (mix([ring("a", 5)], graphs, facts_per_graph=2, seed=3) for _ in range(2))
    assert len(one.valid.facts) == 4
    assert torch.equal(one.valid.facts, again.valid.facts)


def test_a_name_must_stand_for_one_data_set() -> None:
    with pytest.raises(DataError, match="'a' twice"):
        mix([ring("a", 5)], [ring("a", 5)])
