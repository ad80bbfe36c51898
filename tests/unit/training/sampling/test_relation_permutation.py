import torch

from knowformer.training.sampling.relation_permutation import permute_relations


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_no_relation_is_permuted_unless_asked_for() -> None:
    assert permute_relations(7, 0.0, generator=seeded(0)) is None


def test_it_is_a_permutation_that_inverses_follow() -> None:
    for seed in range(20):
        permutation = permute_relations(9, 0.5, generator=seeded(seed))
        assert permutation is not None
        assert sorted(permutation.tolist()) == list(range(18))
        assert torch.equal(permutation[9:], permutation[:9] + 9)


def test_about_the_given_fraction_is_permuted() -> None:
    moved = 0
    for seed in range(50):
        permutation = permute_relations(200, 0.1, generator=seeded(seed))
        assert permutation is not None
        moved += int((permutation[:200] != torch.arange(200)).sum())
    assert 0.07 < moved / (50 * 200) < 0.12
