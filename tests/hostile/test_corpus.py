"""The corpus: no case ends in a traceback, a signal, a hang, a write outside or a leftover.

A share of the cases, the same every time; ``python -m tests.hostile`` takes minutes, and all.
"""

from pathlib import Path

import pytest

from tests.hostile import CORPORA
from tests.hostile.case import faults_of, place_in

SHARE = 17  # one case in so many: a prime, so that it falls on other rows of every table
CASES = {name: list(cases()) for name, cases in CORPORA.items()}


def test_there_are_a_thousand_cases_with_names_of_their_own() -> None:
    names = [case.name for cases in CASES.values() for case in cases]
    assert len(names) > 1000
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_case_ends_in_a_result_or_a_sentence(
    name: str, template: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOWFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KNOWFORMER_DATA", raising=False)
    faults: dict[str, list[str]] = {}
    for case in CASES[name][::SHARE]:
        with place_in(tmp_path / "place", *template) as place:
            found = faults_of(case, place)
        faults |= {case.name: found} if found else {}
    assert faults == {}
