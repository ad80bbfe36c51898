import pytest
import torch

from knowformer.data.dataset import Dataset, Split, TrainingSplits
from knowformer.errors import ConfigError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.config import ModelConfig
from knowformer.training import defaults
from knowformer.training.config import MOST_EPOCHS, RunConfig
from knowformer.training.defaults import (
    LEFT_OPEN,
    PREFERRED_BATCH_SIZE,
    choose_batch_size,
    choose_depth,
    choose_epochs,
    choose_hidden_edges,
    choose_view_size,
    complete,
)
from knowformer.training.plan import predicted_memory
from knowformer.training.settings_file import flat_settings, parse_config


def test_what_is_left_open_is_chosen_and_what_is_given_stays(ring: Dataset) -> None:
    splits = ring.for_training()
    chosen = flat_settings(complete(RunConfig(), splits).config)
    expected = [0, 3, 2, "facts", MOST_EPOCHS, PREFERRED_BATCH_SIZE]
    assert [chosen[key] for key in LEFT_OPEN] == expected
    training = {"hide": "links", "max_epochs": 3, "batch_size": 2}
    model = {"view_size": 7, "num_layers": 4, "num_query_key_hops": 0}
    given = parse_config({"model": model, "training": training}, where="test")
    assert complete(given, splits) == (given, "")
    assert flat_settings(RunConfig()).keys() == chosen.keys()
    left_open = {key for key, value in flat_settings(RunConfig()).items() if value != chosen[key]}
    assert left_open == set(LEFT_OPEN)


def test_what_is_chosen_is_said_with_the_reason(ring: Dataset) -> None:
    given = parse_config({"training": {"max_epochs": 3}}, where="test")
    chosen = complete(given, ring.for_training())
    first, *lines = chosen.note.splitlines()
    assert first == "Chosen for this graph, as no setting says it:"
    assert [line.split()[0] for line in lines] == [
        key for key in LEFT_OPEN if key != "training.max_epochs"
    ]
    assert "  model.view_size = 0: a query sees the whole graph" in lines[0]
    assert not complete(chosen.config, ring.for_training()).note


def test_the_batch_is_sixteen_where_memory_allows(ring: Dataset) -> None:
    assert choose_batch_size(RunConfig(), ring.train.graph) == PREFERRED_BATCH_SIZE


@pytest.mark.parametrize("wanted", [1, 4])
def test_a_short_memory_makes_the_batch_smaller(
    ring: Dataset, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, config = ring.train.graph, RunConfig(threads=1)
    needed = predicted_memory(config, graph, wanted)
    free = 0.0 if wanted == 1 else 1.0001 * needed / defaults.USABLE_FRACTION
    monkeypatch.setattr(defaults, "available_memory", lambda: free)
    assert choose_batch_size(config, graph) == wanted


def test_a_model_is_less_deep_in_views_unless_a_depth_is_given() -> None:
    whole, views = ModelConfig(view_size=0), ModelConfig(view_size=1000)
    assert list(choose_depth(whole, 6000).values()) == [3, 2]
    assert list(choose_depth(views, 6000).values()) == [2, 1]
    assert list(choose_depth(views, 900).values()) == [3, 2]  # a view of all of it
    given = ModelConfig(view_size=1000, num_query_key_hops=0)
    assert list(choose_depth(given, 6000).values()) == [2, 0]


def large_star(*, num_near: int, answers: range) -> Split:
    """6,000 entities, the first linked to the next ones, the others to none; it may like any."""
    near = torch.arange(1, num_near + 1)
    zeros = torch.zeros_like(near)
    graph = KnowledgeGraph(
        Vocabulary((str(n) for n in range(6000)), kind="entity"),
        Vocabulary(["knows", "likes"], kind="relation"),
        torch.stack([zeros, zeros, near], 1),
    )
    facts = torch.tensor([[0, 1, answer] for answer in answers])
    return Split("valid", graph, facts, torch.cat([graph.facts, facts]))


@pytest.mark.parametrize(
    ("num_near", "answers", "size"),
    [
        (300, range(1, 300, 3), 500),  # in the smallest view
        (1500, range(1, 1500, 15), 2000),  # a third, two thirds, all
        (1500, range(5000, 5100), 500),  # in none
    ],
)
def test_a_large_graph_is_seen_in_views_as_small_as_answers_allow(
    num_near: int, answers: range, size: int
) -> None:
    star = large_star(num_near=num_near, answers=answers)
    assert choose_view_size(RunConfig(), star).size == size


@pytest.mark.parametrize(("minutes", "size"), [(5, 1000), (30, 2000), (600, 4000)])
def test_views_are_as_large_as_the_minutes_allow(minutes: float, size: int) -> None:
    config = parse_config({"training": {"max_minutes": minutes}}, where="test")
    far = large_star(num_near=3900, answers=range(1, 3900, 39))
    assert choose_view_size(config, far).size == size


def test_small_graphs_and_partitions_are_seen_whole(ring: Dataset) -> None:
    assert choose_view_size(RunConfig(), ring.valid).size == 0
    partitioned = parse_config({"training": {"region_size": 500}}, where="test")
    large = large_star(num_near=300, answers=range(1, 3))
    assert choose_view_size(RunConfig(), large).size > 0
    assert choose_view_size(partitioned, large).size == 0


def test_unlinked_pairs_are_told_apart_on_the_whole_graph() -> None:
    of_pairs = {"training": {"loss": "pairs"}}
    large = large_star(num_near=300, answers=range(1, 3))
    assert choose_view_size(parse_config(of_pairs, where="test"), large).size == 0
    with pytest.raises(ConfigError, match=r"needs model\.view_size = 0, got 500"):
        parse_config({**of_pairs, "model": {"view_size": 500}}, where="test")


def splits_of(
    train: list[tuple[str, str, str]], valid: list[tuple[str, str, str]]
) -> TrainingSplits:
    graph = KnowledgeGraph.from_triples(train)
    asked = torch.tensor(
        [[graph.entities.id(h), graph.relations.id(r), graph.entities.id(t)] for h, r, t in valid],
        dtype=torch.long,
    ).view(-1, 3)
    return TrainingSplits(
        Split("train", graph, graph.facts, graph.facts),
        Split("valid", graph, asked, torch.cat([graph.facts, asked])),
    )


LINKED_TWICE = [("a", "r", "b"), ("b", "s", "a"), ("a", "r", "c"), ("c", "r", "d")]


@pytest.mark.parametrize(
    ("valid", "hidden"),
    [
        ([("b", "r", "c"), ("a", "r", "d")], "links"),  # none of them is linked
        ([("a", "s", "b"), ("a", "r", "d")], "facts"),  # as many as in training
        ([], "facts"),
    ],
)
def test_links_are_hidden_where_only_training_facts_have_them(
    valid: list[tuple[str, str, str]], hidden: str
) -> None:
    assert choose_hidden_edges(splits_of(LINKED_TWICE, valid)).edges == hidden


def test_a_large_graph_is_trained_for_fewer_epochs(
    ring: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ring.for_training().train
    assert choose_epochs(train) == MOST_EPOCHS
    num_queries = 2 * len(train.facts)  # in a ring every query has one answer
    monkeypatch.setattr(defaults, "ENOUGH_QUERIES", num_queries / 2)
    assert choose_epochs(train) == 0.5
