import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.graph import splice
from knowformer.graph.splice import Splice


@pytest.mark.parametrize("few", [0, splice.FEW])
@given(size=st.integers(0, 30), data=st.data())
def test_elements_leave_and_come_as_in_a_list(few: int, size: int, data: st.DataObject) -> None:
    numbers = st.integers(0, max(0, size - 1))
    removed = sorted(data.draw(st.sets(numbers, max_size=size))) if size else []
    places = sorted(data.draw(st.lists(st.integers(0, size), max_size=12)))
    change = Splice(size, np.array(removed, dtype=np.int64), np.array(places, dtype=np.int64))
    expected: list[int] = []
    for number in range(size + 1):
        expected += [100 + at for at, place in enumerate(places) if place == number]
        expected += [number] if number < size and number not in removed else []
    old = np.arange(size, dtype=np.int32)
    result = change.apply(old, 100 + np.arange(len(places)))
    assert result.dtype == np.int32
    assert result.tolist() == expected
    assert result[change.new_numbers].tolist() == [100 + at for at in range(len(places))]
    kept = np.setdiff1d(old, removed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splice, "FEW", few)
        moved = change.moved(kept)
    assert moved.dtype == kept.dtype
    assert result[moved].tolist() == kept.tolist()
