import torch

from knowformer.queries.query import QueryBatch


def batch_of(num_queries: int = 3) -> QueryBatch:
    return QueryBatch(
        heads=torch.arange(num_queries) + 4,
        relations=torch.arange(num_queries) + 7,
        rows=torch.tensor([0, 2, 2]),
        tails=torch.tensor([1, 0, 3]),
    )


def test_facts_are_the_answers_of_their_rows() -> None:
    assert batch_of().facts.tolist() == [[4, 7, 1], [6, 9, 0], [6, 9, 3]]


def test_targets_mark_each_answer_of_each_query() -> None:
    expected = torch.zeros(3, 5, dtype=torch.bool)
    expected[0, 1] = expected[2, 0] = expected[2, 3] = True
    assert torch.equal(batch_of().targets(5), expected)


def test_a_batch_is_described_by_its_size_and_its_first_queries() -> None:
    assert batch_of().describe() == (
        "a batch of 3 queries (head, relation ids): [[4, 7], [5, 8], [6, 9]]"
    )
    assert batch_of(5).describe().endswith("[[4, 7], [5, 8], [6, 9]] and 2 more")
