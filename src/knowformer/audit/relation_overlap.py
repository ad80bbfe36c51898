"""Relations that say the same: near-duplicates, near-inverses and symmetric ones.

Where r(h, t) nearly always comes with s(h, t) or s(t, h), one of the two held out is read off the
other: no reasoning is needed. This is what made FB15k easy (Toutanova and Chen, 2015; Dettmers et
al., 2018), and the threshold is that of Akrami et al. (2020).
"""

from typing import Literal

import numpy as np
from pydantic import BaseModel

from knowformer.graph.fact_index import FactIndex, Ids, Mask, pair_keys

NEARLY = 0.8
MIN_COMMON = 5
"""Fewer common pairs may be chance."""


class RelationOverlap(BaseModel):
    """How far the pairs of one relation are pairs of another, read forwards or backwards."""

    kind: Literal["duplicate", "inverse", "symmetric"]
    relation: int
    other: int
    common: int
    share: float
    """Fraction of the relation's facts that the other relation has too."""
    share_of_other: float


def find_overlaps(
    facts: Ids, *, num_entities: int, num_relations: int, least: float = NEARLY
) -> list[RelationOverlap]:
    """Returns pairs of relations of which one nearly repeats the other, the largest first.

    ``relation`` is the one that is repeated: ``other`` has a fraction ``least`` or more of its
    facts. Where each has the other's, the pair is listed once. Self-loops are left aside.

    Args:
        facts: distinct facts.
        num_entities: how many entities there are.
        num_relations: how many relations there are.
        least: the smallest fraction that counts as an overlap.
    """
    facts = facts[facts[:, 0] != facts[:, 2]]
    counts = np.bincount(facts[:, 1], minlength=num_relations)
    left, right, common = _count_common(facts, num_entities, num_relations)
    overlaps: list[RelationOverlap] = []
    for r, s, number in zip(left.tolist(), right.tolist(), common.tolist(), strict=True):
        one, other, is_backwards = r, s % num_relations, s >= num_relations
        if counts[one] > counts[other] or (counts[one] == counts[other] and one > other):
            one, other = other, one  # the smaller relation is the one that is repeated
        if number < MIN_COMMON or number < least * counts[one]:
            continue
        kind = "symmetric" if one == other else "inverse" if is_backwards else "duplicate"
        overlaps.append(
            RelationOverlap(
                kind=kind,
                relation=one,
                other=other,
                common=number,
                share=number / int(counts[one]),
                share_of_other=number / int(counts[other]),
            )
        )
    return sorted(overlaps, key=lambda o: (-o.common, o.relation, o.other))


def _count_common(facts: Ids, num_entities: int, num_relations: int) -> tuple[Ids, Ids, Ids]:
    """Counts pairs of entities by the two relations that link them; backwards ones count from R.

    Each fact is listed forwards and backwards under its ordered pair, and every two entries of a
    pair are one co-occurrence: those i places apart are found by shifting the sorted list by i.
    """
    heads, relations, tails = facts.T
    keys = np.concatenate(
        [pair_keys(heads, tails, num_entities), pair_keys(tails, heads, num_entities)]
    )
    labels = np.concatenate([relations, relations + num_relations])
    order = np.lexsort((labels, keys))
    keys, labels = keys[order], labels[order]
    width = 2 * num_relations
    codes: list[Ids] = []
    numbers: list[Ids] = []
    shift = 1
    while (same := np.flatnonzero(keys[shift:] == keys[:-shift])).size:
        code, number = np.unique(labels[same] * width + labels[same + shift], return_counts=True)
        codes.append(code)
        numbers.append(number)
        shift += 1
    if not codes:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, empty
    code, index = np.unique(np.concatenate(codes), return_inverse=True)
    common = np.bincount(index, weights=np.concatenate(numbers)).astype(np.int64)
    first, second = code // width, code % width
    # The same pair read from its other end says the same again: (r, s backwards) and (s, r
    # backwards), and two relations both backwards.
    once = (first < num_relations) & ((second < num_relations) | (first <= second - num_relations))
    return first[once], second[once], common[once]


def leak_mask(
    facts: Ids, evidence: FactIndex, overlaps: list[RelationOverlap], *, least: float = NEARLY
) -> Mask:
    """Returns True for facts that the evidence holds under an overlapping relation."""
    leaked = np.zeros(len(facts), dtype=bool)
    for overlap in overlaps:
        for relation, other, share in (
            (overlap.relation, overlap.other, overlap.share),
            (overlap.other, overlap.relation, overlap.share_of_other),
        ):
            if share < least:
                continue
            asked = np.flatnonzero((facts[:, 1] == relation) & (facts[:, 0] != facts[:, 2]))
            heads, _, tails = facts[asked].T
            if overlap.kind != "duplicate":
                heads, tails = tails, heads
            leaked[asked] |= evidence.has_fact(
                np.stack([heads, np.full(len(asked), other), tails], 1)
            )
    return leaked


def leak_groups(
    facts: Ids, overlaps: list[RelationOverlap], *, num_entities: int, num_relations: int
) -> Ids:
    """Returns a group number per fact: facts of overlapping relations on one pair share theirs."""
    cluster = np.arange(num_relations)
    overlapping = np.zeros(num_relations, dtype=bool)
    for overlap in overlaps:
        overlapping[[overlap.relation, overlap.other]] = True
        old, new = cluster[overlap.relation], cluster[overlap.other]
        cluster[cluster == old] = new
    heads, relations, tails = facts.T
    pairs = pair_keys(np.minimum(heads, tails), np.maximum(heads, tails), num_entities)
    _, pair = np.unique(pairs, return_inverse=True)
    codes = pair * np.int64(num_relations) + cluster[relations]
    # Elsewhere every fact is a group of its own.
    codes = np.where(
        overlapping[relations], codes, codes.max(initial=0) + 1 + np.arange(len(facts))
    )
    _, groups = np.unique(codes, return_inverse=True)
    return groups
