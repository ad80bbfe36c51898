"""Relation categories by hand: more than 1.5 partners on average count as many."""

import torch

from knowformer.graph.categories import relation_categories


def facts(*rows: tuple[int, int, int]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.long).reshape(-1, 3)


def test_each_relation_gets_the_category_of_its_facts():
    married, mother_of, born_in, knows, unused = range(5)
    known = facts(
        *[(0, married, 1), (2, married, 3)],  # one each way
        *[(0, mother_of, tail) for tail in (1, 2, 3)],  # one head, many tails
        *[(head, born_in, 4) for head in (0, 1, 2)],  # many heads, one tail
        *[(head, knows, tail) for head in (0, 1) for tail in (2, 3)],
    )
    categories = relation_categories(known, num_relations=5)
    assert [categories[r] for r in (married, mother_of, born_in, knows)] == [
        "1-1",
        "1-n",
        "n-1",
        "n-n",
    ]
    assert categories[unused] == "1-1"


def test_exactly_one_and_a_half_partners_are_not_many():
    # Three facts from two heads to three tails: 1.5 tails a head, 1 head a tail.
    assert relation_categories(facts((0, 0, 2), (0, 0, 3), (1, 0, 4)), 1) == ["1-1"]
    # And backwards: 1.5 heads a tail.
    assert relation_categories(facts((2, 0, 0), (3, 0, 0), (4, 0, 1)), 1) == ["1-1"]


def test_just_above_one_and_a_half_partners_are_many():
    # Five facts from three heads: 1.67 tails a head.
    rows = [(0, 0, 3), (0, 0, 4), (1, 0, 5), (1, 0, 6), (2, 0, 7)]
    assert relation_categories(facts(*rows), 1) == ["1-n"]


def test_repeated_facts_count_once():
    # Counted twice, the fact would make two tails a head and two heads a tail.
    assert relation_categories(facts((0, 0, 1), (0, 0, 1), (0, 0, 1)), 1) == ["1-1"]
