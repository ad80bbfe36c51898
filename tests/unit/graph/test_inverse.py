import torch
from hypothesis import given
from hypothesis import strategies as st

from knowformer.graph.inverse import (
    asked_relation,
    base_relation,
    inverse_facts,
    inverse_of,
    is_inverse,
    num_with_inverses,
    with_inverse_facts,
)
from knowformer.graph.vocabulary import Vocabulary

num_relations = st.integers(1, 300)


@given(num_relations)
def test_the_inverse_of_the_inverse_is_the_relation_itself(count: int) -> None:
    relations = torch.arange(num_with_inverses(count))
    inverse = inverse_of(relations, count)
    assert torch.equal(inverse_of(inverse, count), relations)
    assert not (inverse == relations).any()
    assert torch.equal(inverse.sort().values, relations)


@given(num_relations)
def test_just_one_of_a_relation_and_its_inverse_is_an_inverse(count: int) -> None:
    relations = torch.arange(num_with_inverses(count))
    inverse = inverse_of(relations, count)
    assert torch.equal(is_inverse(inverse, count), ~is_inverse(relations, count))
    assert not is_inverse(torch.arange(count), count).any()
    assert torch.equal(base_relation(inverse, count), base_relation(relations, count))
    assert torch.equal(base_relation(torch.arange(count), count), torch.arange(count))


@given(
    num_relations,
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 10**6), st.integers(0, 9)), max_size=9),
)
def test_facts_read_backwards_twice_are_the_facts(
    count: int, rows: list[tuple[int, int, int]]
) -> None:
    facts = torch.tensor(rows, dtype=torch.long).reshape(-1, 3)
    facts[:, 1] %= num_with_inverses(count)
    backwards = inverse_facts(facts, count)
    assert torch.equal(inverse_facts(backwards, count), facts)
    assert torch.equal(backwards[:, 0], facts[:, 2])
    assert torch.equal(backwards[:, 2], facts[:, 0])


def test_inverse_facts_follow_the_facts_in_the_same_order() -> None:
    facts = torch.tensor([[4, 0, 5], [6, 2, 6]])
    expected = torch.tensor([[4, 0, 5], [6, 2, 6], [5, 3, 4], [6, 5, 6]])
    assert torch.equal(with_inverse_facts(facts, 3), expected)
    assert with_inverse_facts(facts[:0], 3).shape == (0, 3)


@given(num_relations)
def test_one_id_as_an_integer_is_treated_as_in_a_tensor(count: int) -> None:
    relations = torch.arange(num_with_inverses(count))
    for function in (inverse_of, is_inverse, base_relation):
        assert [function(r, count) for r in range(2 * count)] == function(relations, count).tolist()


def test_an_inverse_asks_for_the_head_of_the_relation_it_is_named_after() -> None:
    names = Vocabulary(["likes", "knows"], kind="relation")
    asked = [asked_relation(number, names) for number in range(num_with_inverses(2))]
    assert asked == [("likes", "tail"), ("knows", "tail"), ("likes", "head"), ("knows", "head")]
