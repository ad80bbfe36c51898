import pytest
import torch

from knowformer.errors import DataError
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.id_ranges import check_facts

SIZES = {"num_entities": 7, "num_relations": 3}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("number", [1, 63, 64, 200])  # rows are looked at 64 at a time
def test_an_id_out_of_range_is_found_wherever_it_stands(dtype: torch.dtype, number: int) -> None:
    draw = torch.Generator().manual_seed(number)
    columns = [torch.randint(size, (number,), generator=draw) for size in (7, 3, 7)]
    facts = torch.stack(columns, 1).to(dtype)
    check_facts(facts, **SIZES)
    for row in (0, number // 2, number - 1):
        for column, wrong in ((0, 7), (1, 3), (2, -1), (0, -(2**31)), (1, 2**31 - 1)):
            broken = facts.clone()
            broken[row, column] = wrong
            with pytest.raises(DataError, match=f"got {wrong:,}"):
                check_facts(broken, **SIZES)


def test_no_facts_are_in_range_and_no_edges_are_made_of_others() -> None:
    check_facts(torch.empty(0, 3, dtype=torch.long), num_entities=0, num_relations=0)
    with pytest.raises(DataError, match="head ids from 0 to 6"):
        Adjacency(torch.tensor([[7, 0, 0]]), **SIZES)
