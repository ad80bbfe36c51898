"""Queries one by one, each with its own hidden answers."""

import torch

from knowformer.views.queries import HiddenTargets, queries_of

HEADS, RELATIONS = torch.tensor([5, 6, 7]), torch.tensor([0, 3, 1])


def test_nothing_is_hidden_by_default() -> None:
    queries = queries_of(HEADS, RELATIONS, None, num_relations=2)
    assert [(query.head, query.relation, query.inverse) for query in queries] == [
        (5, 0, 2),
        (6, 3, 1),
        (7, 1, 3),
    ]
    assert [query.targets.tolist() for query in queries] == [[], [], []]


def test_targets_come_in_any_order_and_count_once() -> None:
    rows, targets = torch.tensor([2, 0, 2, 2, 0]), torch.tensor([9, 4, 8, 9, 3])
    queries = queries_of(HEADS, RELATIONS, HiddenTargets(rows, targets, "links"), num_relations=2)
    assert [query.targets.tolist() for query in queries] == [[3, 4], [], [8, 9]]
    assert all(query.hides_links for query in queries)
