"""Findings at their thresholds, from numbers alone."""

from typing import Any

import pytest

from knowformer.audit.audit import Audit, audit
from knowformer.audit.findings import find
from knowformer.data.loading import load_dataset


@pytest.fixture(scope="module")
def nations() -> Audit:
    return audit(load_dataset("nations"))


def changed(audited: Audit, path: str, **values: Any) -> Audit:
    """Returns a copy with other numbers in one of its tables, named by a dotted path."""
    copy = audited.model_copy(deep=True)
    target: Any = copy
    for name in filter(None, path.split(".")):
        target = target[name] if isinstance(target, dict) else getattr(target, name)
    for name, value in values.items():
        setattr(target, name, value)
    return copy


def level(audited: Audit, topic: str) -> str | None:
    return next((finding.level for finding in find(audited) if finding.topic == topic), None)


@pytest.mark.parametrize(("leaked", "expected"), [(0, "good"), (1, "note"), (10, "warning")])
def test_leaks_are_weighed_by_the_fraction_of_test_facts(
    nations: Audit, leaked: int, expected: str
) -> None:
    assert level(changed(nations, "held_out.test", facts=1000, leaked=leaked), "leaks") == expected


@pytest.mark.parametrize(("unseen", "expected"), [(0, "good"), (99, "note"), (100, "warning")])
def test_unseen_entities_are_weighed_by_the_worse_split(
    nations: Audit, unseen: int, expected: str
) -> None:
    numbers = changed(nations, "held_out.valid", facts=1000, with_unseen=unseen)
    assert level(changed(numbers, "held_out.test", with_unseen=0), "unseen entities") == expected


@pytest.mark.parametrize(
    ("number", "fraction", "expected"), [(1, 1.0, "good"), (2, 0.9, "note"), (2, 0.89, "warning")]
)
def test_components_are_weighed_by_the_largest(
    nations: Audit, number: int, fraction: float, expected: str
) -> None:
    numbers = changed(nations, "components", number=number, largest_share=fraction)
    assert level(numbers, "components") == expected


def test_what_is_not_there_is_not_told(nations: Audit) -> None:
    quiet = changed(nations, "", self_loops=0, repeated_rows=0)
    assert level(quiet, "self-loops") is level(quiet, "repeated rows") is None
    assert level(changed(quiet, "", self_loops=1), "self-loops") == "note"
    assert level(changed(quiet, "", repeated_rows=1), "repeated rows") == "note"


def test_warnings_come_first(nations: Audit) -> None:
    levels = [finding.level for finding in find(nations)]
    assert levels == sorted(levels, key=["warning", "note", "good"].index)
    assert set(levels) == {"warning", "note", "good"}
