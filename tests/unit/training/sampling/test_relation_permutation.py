import torch

from knowformer.training.sampling.relation_permutation import swap_relations


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_none_is_swapped_unless_asked_for() -> None:
    assert swap_relations(7, 0.0, generator=seeded(0)) is None


def test_every_part_is_taken_by_one_relation_and_inverses_follow() -> None:
    for seed in range(20):
        parts = swap_relations(9, 0.5, generator=seeded(seed))
        assert parts is not None
        assert sorted(parts.tolist()) == list(range(18))
        assert torch.equal(parts[9:], parts[:9] + 9)


def test_about_the_given_share_takes_part() -> None:
    moved = 0
    for seed in range(50):
        parts = swap_relations(200, 0.1, generator=seeded(seed))
        assert parts is not None
        moved += int((parts[:200] != torch.arange(200)).sum())
    assert 0.07 < moved / (50 * 200) < 0.12
