"""Notices about slow work."""

from threading import Event

import pytest

from knowformer.system.notices import if_slow


def test_slow_work_is_noticed_while_it_runs() -> None:
    said = Event()
    with if_slow(said.set, seconds=0.0):
        assert said.wait(10.0)


def test_quick_work_is_not_noticed_even_if_it_fails() -> None:
    said = Event()
    with if_slow(said.set, seconds=0.2):
        pass
    with pytest.raises(KeyError), if_slow(said.set, seconds=0.2):
        raise KeyError
    assert not said.wait(0.4)
