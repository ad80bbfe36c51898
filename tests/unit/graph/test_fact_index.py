"""FactIndex against sets of plain tuples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.errors import DataError
from knowformer.graph.fact_index import BY_PAIR, BY_QUERY, BY_RECEIVER, FactIndex, KeyLayout, Order

Fact = tuple[int, int, int]

SIZES = {"num_entities": 6, "num_relations": 3}
FACTS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=60)
ORDERS = st.sampled_from([BY_PAIR, BY_QUERY, BY_RECEIVER])
NUMBERS = {"head": 0, "relation": 1, "tail": 2}


def as_ids(facts: set[Fact]) -> np.ndarray:
    return np.array(list(facts), dtype=np.int64).reshape(-1, 3)


def sorted_by(order: Order, facts: set[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: [fact[NUMBERS[column]] for column in order])


def facts_of(index: FactIndex) -> list[Fact]:
    return [tuple(fact) for fact in index.layout.facts(index.keys).tolist()]


@given(FACTS, FACTS, ORDERS)
def test_the_index_finds_what_a_set_finds(facts: set[Fact], asked: set[Fact], order: Order) -> None:
    index = FactIndex.of(np.concatenate([as_ids(facts)] * 2), order, **SIZES)
    assert facts_of(index) == sorted_by(order, facts)
    assert index.has_fact(as_ids(asked)).tolist() == [fact in facts for fact in asked]
    first, second = (as_ids(asked)[:, NUMBERS[column]] for column in order[:2])
    for fact, start, stop in zip(asked, *index.runs(first, second), strict=True):
        wanted = [fact[NUMBERS[column]] for column in order[:2]]
        expected = {f for f in facts if [f[NUMBERS[column]] for column in order[:2]] == wanted}
        assert set(facts_of(index)[start:stop]) == expected


@given(FACTS, FACTS, FACTS, ORDERS, st.sampled_from([6, 8, 9, 200]))
def test_a_changed_index_is_the_one_built_anew(
    facts: set[Fact], added: set[Fact], removed: set[Fact], order: Order, num_entities: int
) -> None:
    added, removed = added - facts, removed & facts
    if num_entities > 6:
        added |= {(num_entities - 1, 0, 2)}
    sizes = SIZES | {"num_entities": num_entities}
    index = FactIndex.of(as_ids(facts), order, **SIZES)
    before = index.keys.copy()
    changed = index.resized(**sizes).changed(as_ids(added), as_ids(removed))
    expected = FactIndex.of(as_ids((facts - removed) | added), order, **sizes)
    assert changed.layout == expected.layout
    assert np.array_equal(changed.keys, expected.keys)
    assert np.array_equal(index.keys, before)


def test_facts_that_do_not_fit_into_an_integer_are_refused() -> None:
    most = KeyLayout.fit(BY_QUERY, num_entities=2**28, num_relations=2**7)
    last = np.array([[2**28 - 1, 2**7 - 1, 2**28 - 1]])
    assert most.keys(last).tolist() == [2**63 - 1]
    assert most.facts(most.keys(last)).tolist() == last.tolist()
    with pytest.raises(DataError, match=r"63 bits, .* got 268,435,457 entities and 128 relations"):
        KeyLayout.fit(BY_QUERY, num_entities=2**28 + 1, num_relations=2**7)
