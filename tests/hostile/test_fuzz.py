"""Random bytes and mutations of good files: every reader and every file of a run folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.readers import READER_TARGETS, RUN_FILES, feed, good_inputs, run_targets
from tests.hostile.seeds import mutated

Good = Callable[[str], list[bytes]]

many = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="session")
def good(template: tuple[Path, Path]) -> Good:
    """A function: the good files of a target, which are too long to be shown with a failure."""
    inputs = good_inputs(template[0])
    return lambda name: inputs[name]


@pytest.mark.parametrize("name", READER_TARGETS)
def test_a_good_file_is_read(name: str, tmp_path: Path, good: Good) -> None:
    READER_TARGETS[name](tmp_path, good(name)[0])


@pytest.mark.parametrize("name", READER_TARGETS)
@many
@given(noise=st.binary(max_size=300), which=st.integers(0, 9), seed=st.integers(0, 2**32))
def test_a_reader_reads_or_refuses(
    name: str, tmp_path: Path, good: Good, noise: bytes, which: int, seed: int
) -> None:
    content = good(name)[which % len(good(name))]
    for odd in (noise, mutated(content, seed)):
        feed(READER_TARGETS[name], tmp_path, odd)


@pytest.mark.parametrize("name", [f"run {file}" for file in RUN_FILES])
@many
@given(seed=st.integers(0, 2**32))
def test_a_run_folder_is_used_or_refused(
    name: str, tmp_path: Path, template: tuple[Path, Path], good: Good, seed: int
) -> None:
    feed(run_targets(template[0])[name], tmp_path, mutated(good(name)[0], seed))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", ["dataset.json", "calibration.json", "metrics.json"])
@many
@given(value=JSON, place=st.integers(0, 50))
def test_any_value_at_any_place_of_json_is_used_or_refused(
    name: str, tmp_path: Path, template: tuple[Path, Path], value: object, place: int
) -> None:
    run, _ = template
    content = json.loads((run / name).read_text("utf-8"))
    places = [(content, key) for key in content]
    places += [(v, key) for v in content.values() if isinstance(v, dict) for key in v]
    inside, key = places[place % len(places)]
    inside[key] = value
    feed(run_targets(run)[f"run {name}"], tmp_path, json.dumps(content).encode())
