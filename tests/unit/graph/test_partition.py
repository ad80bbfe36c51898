import pytest
import torch

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.partition import cut_into_regions


def chain(num_entities: int) -> Adjacency:
    heads = torch.arange(num_entities - 1)
    facts = torch.stack([heads, torch.zeros_like(heads), heads + 1], 1)
    return Adjacency(facts, num_entities=num_entities, num_relations=1)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("size", [2, 7, 50, 99])
def test_every_entity_is_in_exactly_one_region(size: int) -> None:
    facts = torch.randint(100, (150, 3), generator=seeded(1))
    facts[:, 1] %= 3
    adjacency = Adjacency(facts, num_entities=100, num_relations=3)
    regions = cut_into_regions(adjacency, size, generator=seeded(0))
    assert torch.cat(regions).sort().values.tolist() == list(range(100))
    assert all(torch.equal(region, region.sort().values) for region in regions)


def test_a_region_of_a_chain_is_made_of_long_pieces() -> None:
    regions = cut_into_regions(chain(1000), 100, generator=seeded(0))
    pieces = sum(int((region.diff() > 1).sum()) + 1 for region in regions)
    assert len(regions) >= 8
    assert pieces <= 10  # as many as patches were seeded: each is in one piece


def test_small_components_share_a_region() -> None:
    facts = torch.tensor([[i, 0, i + 1] for i in range(0, 40, 2)])
    adjacency = Adjacency(facts, num_entities=40, num_relations=1)
    regions = cut_into_regions(adjacency, 10, generator=seeded(3))
    assert [len(region) for region in regions] == [10, 10, 10, 10]
    assert all(set((region // 2).bincount().tolist()) <= {0, 2} for region in regions)


def test_the_generator_decides() -> None:
    first, same, other = (
        cut_into_regions(chain(200), 50, generator=seeded(seed)) for seed in (0, 0, 1)
    )
    assert [r.tolist() for r in first] == [r.tolist() for r in same]
    assert [r.tolist() for r in first] != [r.tolist() for r in other]
