import torch

from knowformer.model.weights import LayerVectors, select_queries, tensors_in, with_tensors

A, B, C = (torch.arange(3.0)[:, None, None] + number for number in (0, 10, 20))
VECTORS = (LayerVectors(None, (A,)), LayerVectors(B, (C, A)))


def test_tensors_of_a_tree_come_in_order_without_what_is_none() -> None:
    tree = (VECTORS, 3, None, "name", (A,))
    assert [tensor.data_ptr() for tensor in tensors_in(tree)] == [
        tensor.data_ptr() for tensor in (A, B, C, A, A)
    ]


def test_a_tree_takes_other_tensors_and_keeps_its_form() -> None:
    tree = (VECTORS, 3, None)
    doubled = with_tensors(tree, [2 * tensor for tensor in tensors_in(tree)])
    assert isinstance(doubled[0][1], LayerVectors)
    assert doubled[0][0].query_key is None
    assert doubled[1:] == (3, None)
    for ours, theirs in zip(tensors_in(doubled), tensors_in(tree), strict=True):
        assert torch.equal(ours, 2 * theirs)


def test_queries_are_selected_by_number_or_by_slice() -> None:
    by_number = select_queries(VECTORS, torch.tensor([2, 0, 2]))
    assert [tensor.flatten().tolist() for tensor in tensors_in(by_number)] == [
        [2, 0, 2], [12, 10, 12], [22, 20, 22], [2, 0, 2],
    ]  # fmt: skip
    by_slice = select_queries(VECTORS, slice(1, 3))
    expected = select_queries(VECTORS, torch.tensor([1, 2]))
    assert all(map(torch.equal, tensors_in(by_slice), tensors_in(expected)))
