import torch

from knowformer.training.sampling.negatives import sample_negatives


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_negatives_are_never_known_answers() -> None:
    known = torch.rand(20, 30, generator=generator()) < 0.7
    known[:, 3] = False
    known[0] = True
    known[0, 29] = False  # a single candidate is left
    negatives = sample_negatives(known, 200, generator=generator(1))
    assert negatives.shape == (20, 200)
    assert not known.gather(1, negatives).any()


def test_negatives_are_uniform_over_the_candidates() -> None:
    known = torch.zeros(1, 8, dtype=torch.bool)
    known[0, :3] = True
    counts = torch.bincount(
        sample_negatives(known, 10_000, generator=generator())[0], minlength=8
    ).tolist()
    assert counts[:3] == [0, 0, 0]
    # 2,000 expected of each, with a standard deviation of 40.
    assert all(abs(count - 2000) < 200 for count in counts[3:])


def test_a_query_whose_every_entity_is_known_still_gets_entities() -> None:
    known = torch.tensor([[True] * 4, [True, True, False, True]])
    negatives = sample_negatives(known, 50, generator=generator())
    assert set(negatives[0].tolist()) == {0, 1, 2, 3}
    assert set(negatives[1].tolist()) == {2}


def test_negatives_depend_on_the_generator_alone() -> None:
    known = torch.zeros(3, 9, dtype=torch.bool)
    first = sample_negatives(known, 5, generator=generator(4))
    assert torch.equal(first, sample_negatives(known, 5, generator=generator(4)))
    assert not torch.equal(first, sample_negatives(known, 5, generator=generator(5)))
