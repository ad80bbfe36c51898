from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bench import RING, TINY, Bench, WriteExperiment
from knowformer.data.dataset import Dataset, Split
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer_lab.memory import peak_memory_mib, reset_peak_memory
from knowformer_lab.results import dataset_checksum
from knowformer_lab.studies.kinds import shortest_path_lengths, with_facts_dropped


def plain_length(graph: KnowledgeGraph, head: int, tail: int, longest: int) -> int:
    neighbours: dict[int, set[int]] = {}
    for h, _, t in graph.facts.tolist():
        neighbours.setdefault(h, set()).add(t)
        neighbours.setdefault(t, set()).add(h)
    distance, waiting = {head: 0}, deque([head])
    while waiting:
        here = waiting.popleft()
        for there in neighbours.get(here, set()) - distance.keys():
            distance[there] = distance[here] + 1
            waiting.append(there)
    return min(distance.get(tail, 0), longest)


@pytest.mark.parametrize("seed", range(5))
def test_shortest_paths_are_those_of_a_plain_search(
    random_graph: Callable[..., KnowledgeGraph], seed: int
) -> None:
    graph = random_graph(seed, num_entities=90, num_facts=80)
    asked = random_graph(seed + 100, num_entities=90, num_facts=200).facts
    lengths = shortest_path_lengths(graph, asked, 5)
    assert lengths.tolist() == [plain_length(graph, h, t, 5) for h, _, t in asked.tolist()]
    assert {0, 5} <= set(lengths.tolist())


def test_dropping_more_facts_drops_the_same_ones_too(
    random_graph: Callable[..., KnowledgeGraph],
) -> None:
    graph = random_graph(num_facts=50)
    split = Split("test", graph, graph.facts[:5], graph.facts)
    before = {tuple(fact) for fact in graph.facts.tolist()}
    for share in (0.0, 0.3, 0.6, 1.0):
        left = with_facts_dropped(split, share, seed=0)
        facts = {tuple(fact) for fact in left.graph.facts.tolist()}
        assert facts <= before
        assert len(facts) == len(graph.facts) - round(share * len(graph.facts))
        assert left.known is split.known
        before = facts


def test_the_checksum_follows_names_and_facts(ring: Dataset) -> None:
    same = Dataset("another name", ring.train, ring.valid, ring.test)
    assert dataset_checksum(same) == dataset_checksum(ring)
    facts = ring.test.facts.flip(0)
    other = Dataset(ring.name, ring.train, ring.valid, Split("test", ring.test.graph, facts, facts))
    assert dataset_checksum(other) != dataset_checksum(ring)


def test_peak_memory_is_that_since_the_reset() -> None:
    block = torch.ones(2**25)  # 128 MiB
    with_block = peak_memory_mib()
    del block
    reset_peak_memory()
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak cannot be reset here")
    # The reset may hand back more than the block: other tests ran in this process before.
    after = peak_memory_mib()
    assert after < with_block - 64
    assert torch.ones(2**25).sum() > 0
    assert peak_memory_mib() > after + 64


def test_paths_and_bound_measure_what_they_say(
    experiments_folder: Path, write_experiment: WriteExperiment
) -> None:
    write_experiment(
        "paths/one", f'kind = "paths"\ndataset = "{RING}"\nstudy.dropped = [0.0, 0.9]{TINY}'
    )
    write_experiment("theory/one", 'kind = "bound"\nlike = "paths/one"\nstudy.num_queries = 2')
    outcomes = Bench(experiments_folder).run("paths/one", "theory/one")
    paths, bound = [outcome.result for outcome in outcomes]
    assert paths is not None
    assert bound is not None
    assert paths.study is not None
    assert bound.study is not None
    assert paths.evaluation is not None
    by_length, by_dropped = paths.study["by_length"], paths.study["by_dropped"]
    assert sum(row["num_facts"] for row in by_length) == paths.evaluation.protocol.num_facts
    mean = (
        sum(row["num_facts"] * row["mrr"] for row in by_length)
        / paths.evaluation.protocol.num_facts
    )
    assert mean == pytest.approx(paths.evaluation.mrr)
    assert by_dropped[0]["mrr"] == pytest.approx(paths.evaluation.mrr)
    assert by_dropped[0]["facts_left"] > 5 * by_dropped[1]["facts_left"] > 0
    assert bound.evaluation is None
    assert bound.study["pairs_above_bound"] == 0
    assert 0 < bound.study["largest_error"] <= bound.study["largest_possible_error"] + 1e-6
