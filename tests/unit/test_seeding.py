import numpy as np
import torch

from knowformer.seeding import counter_normal, derive_seed, generator, name_keys


def test_derived_seeds_never_change_between_versions() -> None:
    assert derive_seed(0, "init") == 7797302695267191734
    assert derive_seed(7, "noise", 3, 1) == 2221276734484062661


def test_derived_seeds_differ_by_root_and_by_name() -> None:
    streams = [("init",), ("order", 0), ("order", 1), ("noise", 1, 0), ("noise", 0, 1), ()]
    seeds = {derive_seed(root, *names) for root in range(20) for names in streams}
    assert len(seeds) == 20 * len(streams)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_generator_depends_on_its_name_alone() -> None:
    first = torch.rand(5, generator=generator(1, "order", 2))
    torch.rand(100)
    assert torch.equal(first, torch.rand(5, generator=generator(1, "order", 2)))
    assert not torch.equal(first, torch.rand(5, generator=generator(1, "order", 3)))


def test_name_keys_never_change_between_versions_and_tell_names_apart() -> None:
    assert name_keys(["aspirin", "Łódź"]).tolist() == [14697774164033837497, 10311307957789548941]
    names = [f"entity{number}" for number in range(2000)]
    assert len(set(name_keys(names).tolist())) == len(names)
    assert name_keys([]).shape == (0,)


def test_a_row_of_noise_depends_neither_on_the_other_rows_nor_on_their_order() -> None:
    keys = name_keys([f"e{number}" for number in range(50)])
    noise = counter_normal(3, keys, 4)
    order = np.random.default_rng(0).permutation(50)
    assert np.array_equal(counter_normal(3, keys[order], 4), noise[order])
    assert np.array_equal(counter_normal(3, keys[17:18], 4), noise[17:18])


def test_noise_is_standard_normal() -> None:
    noise = counter_normal(11, np.arange(1000, dtype=np.uint64), 100)
    assert noise.dtype == np.float32
    # Five standard errors of 100,000 numbers, for mean, deviation and the fourth moment.
    assert abs(noise.mean()) < 5 / np.sqrt(1e5)
    assert abs(noise.std() - 1) < 5 / np.sqrt(2e5)
    assert abs((noise.astype(np.float64) ** 4).mean() - 3) < 5 * np.sqrt(96 / 1e5)
    assert np.isfinite(noise).all()


def test_columns_seeds_and_neighbouring_keys_of_noise_are_uncorrelated() -> None:
    keys = np.arange(12_500, dtype=np.uint64)
    noise = np.concatenate(
        [counter_normal(5, keys, 6), counter_normal(6, keys, 2), counter_normal(5, keys + 1, 2)], 1
    )
    noise = noise[:-1]
    correlation = np.corrcoef(noise, rowvar=False)
    assert np.abs(correlation - np.eye(10)).max() < 5 / np.sqrt(len(noise))
