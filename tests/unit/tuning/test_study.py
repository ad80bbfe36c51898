from pathlib import Path

import pytest

from knowformer.errors import BundleError
from knowformer.tuning.study import JOURNAL_FILE, Study

pytest.importorskip("optuna")
SPACE = {"model.dropout": ["0", "0.1"], "seed": ["1", "2", "3"]}


def test_a_killed_trial_is_no_trial_and_its_settings_are_tried_again(tmp_path: Path) -> None:
    study = Study(tmp_path, SPACE, seed=0)
    assert study.is_new
    study.propose({"model.dropout": "0.1"})
    first = study.ask()
    assert first.settings["model.dropout"] == "0.1"
    first.complete(0.5, 20)
    study.ask().fail("Expected more.")
    killed = study.ask()
    killed.folder.mkdir(parents=True)

    # What kill -9 leaves in the middle of a write, and while the journal is locked.
    journal = tmp_path / JOURNAL_FILE
    with journal.open("ab") as file:
        file.write(b'{"op_code":')
    journal.with_name(f"{JOURNAL_FILE}.lock").touch()

    study = Study(tmp_path, SPACE, seed=0)
    assert not study.is_new
    assert not killed.folder.exists()
    again = study.ask()
    assert again.settings == killed.settings
    assert again.folder != killed.folder
    again.complete(0.6, 20)
    found = [(trial.number, trial.state, trial.valid_mrr) for trial in study.trials()]
    assert found == [(0, "complete", 0.5), (1, "failed", None), (3, "complete", 0.6)]
    assert [trial.error for trial in study.trials()] == [None, "Expected more.", None]


def test_a_trial_is_hopeless_when_others_had_reached_more_by_then(tmp_path: Path) -> None:
    study = Study(tmp_path, SPACE, seed=0)
    for _ in range(4):
        trial = study.ask()
        assert not trial.is_hopeless(0.4, time_share=0.2)
        assert not trial.is_hopeless(0.5, time_share=0.65)
        trial.complete(0.5, 20)
    trial = study.ask()
    assert not trial.is_hopeless(0.1, time_share=0.25)  # too early to tell
    assert not trial.is_hopeless(0.41, time_share=0.5)  # the others had 0.4 then, 0.5 later
    assert trial.is_hopeless(0.3, time_share=0.75)  # its best was 0.41
    assert not trial.is_hopeless(0.3, time_share=0.95)  # it is over anyway
    trial.prune(20)
    last = study.trials()[-1]
    assert (last.state, last.valid_mrr) == ("pruned", 0.41)


@pytest.mark.parametrize("line", ["{", "[]", "null", '{"op_code": 4}', '{"op_code": 99}'])
def test_a_damaged_journal_is_refused_in_a_sentence(tmp_path: Path, line: str) -> None:
    Study(tmp_path, SPACE, seed=0).ask().complete(0.5, 20)
    journal = tmp_path / JOURNAL_FILE
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:1], line, *lines[1:]]) + "\n")
    with pytest.raises(BundleError, match="the journal of a search"):
        Study(tmp_path, SPACE, seed=0)
