import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from knowformer.audit.relation_overlap import MIN_COMMON, find_overlaps, leak_groups, leak_mask
from knowformer.graph.fact_index import BY_PAIR, FactIndex

SIZES = {"num_entities": 6, "num_relations": 3}
FACTS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=60)


def as_ids(facts: set[tuple[int, int, int]]) -> np.ndarray:
    return np.array(sorted(facts), dtype=np.int64).reshape(-1, 3)


@given(FACTS)
def test_overlaps_are_those_that_sets_of_pairs_give(facts: set[tuple[int, int, int]]) -> None:
    pairs = {r: {(h, t) for h, s, t in facts if s == r and h != t} for r in range(3)}
    expected = set()
    for r in range(3):
        for s in range(r, 3):
            for kind in ("duplicate", "inverse"):
                other = pairs[s] if kind == "duplicate" else {(t, h) for h, t in pairs[s]}
                if r == s and kind == "duplicate":
                    continue
                common = len(pairs[r] & other)
                least = 0.8 * min(len(pairs[r]), len(pairs[s]))
                if common >= MIN_COMMON and common >= least:
                    expected.add(("symmetric" if r == s else kind, frozenset({r, s}), common))
    found = find_overlaps(as_ids(facts), **SIZES)
    assert {(o.kind, frozenset({o.relation, o.other}), o.common) for o in found} == expected
    assert all(0.8 <= o.share <= 1 and o.share >= o.share_of_other for o in found)


@given(FACTS, st.randoms(use_true_random=False))
def test_facts_of_one_group_held_out_together_do_not_leak(
    facts: set[tuple[int, int, int]], random
) -> None:
    ids = as_ids(facts)
    overlaps = find_overlaps(ids, **SIZES)
    groups = leak_groups(ids, overlaps, **SIZES)
    chosen = np.array([random.random() < 0.3 for _ in range(len(ids) + 1)])[groups]
    evidence = FactIndex.of(ids[~chosen], BY_PAIR, **SIZES)
    assert not leak_mask(ids[chosen], evidence, overlaps).any()


def test_a_leak_is_found_forwards_and_backwards() -> None:
    facts = {(i, 0, i + 1) for i in range(6)} | {(i + 1, 1, i) for i in range(5)}
    sizes = {"num_entities": 8, "num_relations": 2}
    overlaps = find_overlaps(as_ids(facts), **sizes)
    assert [(o.kind, o.relation, o.other, o.share) for o in overlaps] == [("inverse", 1, 0, 1.0)]
    index = FactIndex.of(as_ids(facts - {(0, 0, 1), (5, 0, 6)}), BY_PAIR, **sizes)
    assert leak_mask(np.array([[0, 0, 1], [5, 0, 6]]), index, overlaps).tolist() == [True, False]
