import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from knowformer.data.splitting import (
    LEFT_OUT,
    TEST,
    TRAIN,
    VALID,
    SplitSizes,
    split_by_seed,
    split_by_time,
)
from knowformer.errors import ConfigError, DataError

FACTS = st.sets(
    st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 9)), min_size=20, max_size=80
).map(lambda facts: np.array(sorted(facts), dtype=np.int64))


def random_facts(number: int = 5000) -> np.ndarray:
    draw = np.random.default_rng(0)
    relation = draw.choice(4, number, p=[0.9, 0.05, 0.03, 0.02])
    columns = [draw.integers(200, size=number), relation, draw.integers(200, size=number)]
    return np.unique(np.stack(columns, 1), axis=0)


@given(FACTS, st.integers(0, 5))
def test_no_name_of_a_held_out_fact_is_unseen_in_training(facts: np.ndarray, seed: int) -> None:
    parts = split_by_seed(facts, sizes=SplitSizes(5, 5), seed=seed)
    train, rest = facts[parts == TRAIN], facts[parts != TRAIN]
    assert set(rest[:, [0, 2]].ravel()) <= set(train[:, [0, 2]].ravel())
    assert set(rest[:, 1]) <= set(train[:, 1])
    assert len(rest) <= 11


def test_every_relation_gives_its_share() -> None:
    facts = random_facts()
    parts = split_by_seed(facts, sizes=SplitSizes(400, 400), seed=1)
    for part in (VALID, TEST):
        assert abs((parts == part).sum() - 400) <= 1
        for relation in range(4):
            of_relation = facts[:, 1] == relation
            expected = 400 * of_relation.mean()
            assert abs((of_relation & (parts == part)).sum() - expected) <= 0.25 * expected + 2


def test_the_seed_decides() -> None:
    facts = random_facts()
    one, same, other = (
        split_by_seed(facts, sizes=SplitSizes(50, 50), seed=seed) for seed in (1, 1, 2)
    )
    assert (one == same).all()
    assert (one != other).any()


@given(FACTS, st.integers(0, 5))
def test_groups_stay_together(facts: np.ndarray, seed: int) -> None:
    groups = np.minimum(facts[:, 0], facts[:, 2])
    try:
        parts = split_by_seed(facts, sizes=SplitSizes(5, 5), seed=seed, groups=groups)
    except DataError:
        reject()  # the groups are too large to leave one out
    assert all(len(set(parts[groups == group])) == 1 for group in set(groups))


def test_facts_that_are_all_needed_in_training_are_refused() -> None:
    tree = np.array([(0, 0, tail) for tail in range(1, 50)])
    with pytest.raises(DataError, match=r"got 49 in here\. Give more facts"):
        split_by_seed(tree, seed=0, where=" in here")
    with pytest.raises(DataError, match="got 0"):
        split_by_seed(tree[:0], seed=0)
    square = np.array([(head, 0, tail) for head in range(4) for tail in range(4)])
    parts = split_by_seed(square, seed=0)
    assert {TRAIN, VALID, TEST} == set(parts.tolist())


@given(FACTS, st.data())
def test_time_never_runs_backwards(facts: np.ndarray, data: st.DataObject) -> None:
    times = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=len(facts), max_size=len(facts)))
    )
    if len(set(times)) < 3:
        with pytest.raises(DataError, match="three different times"):
            split_by_time(facts, times.astype(float), sizes=SplitSizes(3, 3))
        return
    cut = split_by_time(facts, times.astype(float), sizes=SplitSizes(3, 3))
    train, valid, test = (times[cut.split_ids == part] for part in (TRAIN, VALID, TEST))
    assert len(train)
    assert all(train < cut.valid_from)
    assert all((cut.valid_from <= valid) & (valid < cut.test_from))
    assert all(test >= cut.test_from)
    kept = cut.split_ids != LEFT_OUT
    assert set(facts[kept, 1]) == set(facts[cut.split_ids == TRAIN, 1])


def test_shares_are_shares_or_numbers() -> None:
    assert SplitSizes().counts(1000) == (100, 100)
    assert SplitSizes().counts(1_000_000) == (10_000, 10_000)
    assert SplitSizes(0.05, 7).counts(1000) == (50, 7)
    assert SplitSizes(0.2).counts(1_000_000) == (200_000, 10_000)
    for wrong in (-0.1, 0.0, 1.5):
        with pytest.raises(ConfigError, match="`valid`"):
            SplitSizes(wrong).counts(1000)
    with pytest.raises(DataError, match="fewer facts held out"):
        SplitSizes(0.5, 0.5).counts(1000)
