"""Random bytes and mutations of good files: every reader and every file of a run folder."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.inputs import CONTENTS
from tests.hostile.readers import READER_TARGETS, feed, run_targets

RUN_FILES = tuple(name for name in run_targets(Path()))
GOOD = [CONTENTS[name] for name in ("JSON rows", "triples", "CRLF", "odd quotes", "formulas")]
SPLICES = [b"\x00", b"\xff", b'"', b"\n", b"\t", b",", b"\\u", b"[", b"{", b"9" * 50,
           b"\xed\xa0\x80",            b"nan", b"1e999", b"null", b"-1", b"true"]  # fmt: skip

many = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def mutated(content: bytes, seed: int) -> bytes:
    """Returns the content with a few bytes cut, doubled, flipped or put in, by a seed."""
    draw, changed = random.Random(seed), bytearray(content)
    for _ in range(draw.randrange(1, 5)):
        at = draw.randrange(len(changed) + 1)
        what = draw.randrange(4)
        if what == 0:
            del changed[at : at + draw.randrange(1, 20)]
        elif what == 1:
            changed[at:at] = changed[at : at + draw.randrange(1, 40)]
        elif what == 2 and at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
        else:
            changed[at:at] = draw.choice(SPLICES)
    return bytes(changed)


@pytest.mark.parametrize("name", READER_TARGETS)
@many
@given(noise=st.binary(max_size=300), good=st.sampled_from(GOOD), seed=st.integers(0, 2**32))
def test_a_reader_reads_or_refuses(
    name: str, tmp_path: Path, noise: bytes, good: bytes, seed: int
) -> None:
    for content in (noise, mutated(good, seed)):
        feed(READER_TARGETS[name], tmp_path, content)


@pytest.mark.parametrize("name", RUN_FILES)
@many
@given(seed=st.integers(0, 2**32))
def test_a_run_folder_is_loaded_or_refused(
    name: str, tmp_path: Path, template: tuple[Path, Path], seed: int
) -> None:
    run, _ = template
    target = run_targets(run)[name]
    feed(target, tmp_path, mutated((run / name.removeprefix("run ")).read_bytes(), seed))


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
def test_any_value_at_any_place_of_json_is_loaded_or_refused(
    name: str, tmp_path: Path, template: tuple[Path, Path], value: object, place: int
) -> None:
    run, _ = template
    content = json.loads((run / name).read_text("utf-8"))
    places = [(content, key) for key in content]
    places += [(v, key) for v in content.values() if isinstance(v, dict) for key in v]
    inside, key = places[place % len(places)]
    inside[key] = value
    feed(run_targets(run)[f"run {name}"], tmp_path, json.dumps(content).encode())
