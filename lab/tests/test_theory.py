"""The paper's theorems, numerically: bounds that hold, and colours that a layer can see."""

from itertools import combinations

import pytest
import torch

from knowformer.graph.adjacency import Adjacency
from knowformer_lab.studies.theory import (
    LARGEST_ERROR,
    Palette,
    approximation_error,
    entity_scores,
    error_bound,
    measure_expressivity,
    one_layer,
    ra_wl2,
    random_adjacency,
    remainder_place,
)

S = torch.linspace(-1, 1, 4001, dtype=torch.double)


def test_theorem_1_the_error_stays_below_its_bound_and_meets_it_at_one() -> None:
    error, bound = approximation_error(S), error_bound(S)
    assert (error[:-1] < bound[:-1]).all()
    assert error[-1].item() == pytest.approx(bound[-1].item(), abs=1e-12)
    assert error.max().item() == pytest.approx(LARGEST_ERROR)
    assert bound.max() < torch.e / 2


def test_theorem_1_gamma_lies_between_0_and_1_and_gives_the_remainder() -> None:
    gamma = remainder_place(S)
    assert ((gamma > 0) & (gamma < 1)).all()
    rest = torch.exp(gamma * S) / 2 * S.square()
    assert torch.allclose(rest, approximation_error(S), atol=1e-9)


@pytest.mark.parametrize("entities", [10, 1000])
def test_theorem_1_holds_for_unit_vectors_whatever_their_number(entities: int) -> None:
    draw = torch.Generator().manual_seed(entities)
    q, k = torch.nn.functional.normalize(
        torch.randn(2, entities, 8, generator=draw, dtype=torch.double), dim=-1
    )
    linear, exponential = 1 + q @ k.T, torch.exp(q @ k.T)
    assert (linear - exponential).abs().max() <= LARGEST_ERROR


def adjacency(*facts: tuple[int, int, int], num_entities: int) -> Adjacency:
    return Adjacency(torch.tensor(facts), num_entities=num_entities, num_relations=2)


def test_ra_wl2_sees_the_head_and_the_relations() -> None:
    ring = adjacency(*((u, 0, (u + 1) % 6) for u in range(6)), num_entities=6)
    # All entities of a ring are alike but for the head and where they stand to it.
    assert len(set(ra_wl2(ring, 0, rounds=0, palette=Palette()))) == 2
    assert len(set(ra_wl2(ring, 0, rounds=3, palette=Palette()))) == 6
    fork = adjacency((0, 0, 1), (0, 1, 2), (0, 0, 3), num_entities=4)
    colours = ra_wl2(fork, 0, rounds=1, palette=Palette())
    assert colours[1] == colours[3] != colours[2]


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("attention", [True, False])
def test_theorem_2_a_layer_splits_entities_just_as_ra_wl2_does(
    number: int, attention: bool
) -> None:
    graph = random_adjacency(1, number)
    colours = ra_wl2(graph, 0, rounds=3, palette=Palette())
    scores = entity_scores(one_layer(0, attention=attention, hops=3), graph, 0)
    for u, w in combinations(range(len(colours)), 2):
        gap = abs((scores[u] - scores[w]).item())
        assert (gap > 1e-11) == (colours[u] != colours[w]), (u, w, gap)


def test_theorem_2_with_fewer_hops_than_rounds_the_layer_misses_some() -> None:
    ring = adjacency(*((u, 0, (u + 1) % 8) for u in range(8)), num_entities=8)
    colours = ra_wl2(ring, 0, rounds=3, palette=Palette())
    scores = entity_scores(one_layer(0, attention=True, hops=1), ring, 0)
    assert len(set(colours)) > len(torch.unique((scores * 1e9).round()))


def test_theorem_2_over_pairs_of_graphs_and_beyond_paths() -> None:
    study = measure_expressivity(seed=3, num_graphs=8)
    assert study["pairs_told_apart_by_ra_wl2"] > 1000
    assert study["of_these_by_the_layer"] == study["pairs_told_apart_by_ra_wl2"]
    assert study["pairs_alike_in_one_graph"] > 10
    assert study["of_these_told_apart_by_the_layer"] == 0
    beyond = study["beyond_paths"]
    assert beyond["by_ra_wl2"] == beyond["by_the_layer_without_attention"] == 0
    assert beyond["by_the_layer"] == beyond["pairs"] > 0
