import subprocess
import sys
from pathlib import Path

import pytest

from knowformer.errors import BundleError
from knowformer.runs.metrics import read_metrics, update_metrics


def test_metrics_are_added_to_and_replaced(tmp_path: Path) -> None:
    assert read_metrics(tmp_path) == {}
    update_metrics(tmp_path, {"best_validation": {"step": 1, "valid_mrr": 0.1}})
    update_metrics(tmp_path, {"test": {"name": "Łódź"}})
    update_metrics(tmp_path, {"best_validation": {"step": 2, "valid_mrr": 0.2}})
    assert read_metrics(tmp_path) == {
        "best_validation": {"step": 2, "valid_mrr": 0.2},
        "test": {"name": "Łódź"},
    }


WRITER = """
import sys
from pathlib import Path
from knowformer.runs.metrics import update_metrics
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    update_metrics(Path(sys.argv[1]), {f"{sys.argv[2]}{number}": {}})
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    names = ("train", "evaluate")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name], **pipes) for name in names
    ]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n", "ready\n"]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=300)
    assert set(read_metrics(tmp_path)) == {f"{name}{n}" for name in names for n in range(100)}
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"best_validation": 1}',
        '{"best_validation": {"step": 1, "valid_mrr": NaN}}',
        '{"test": {"mrr": 1e999}}',
        '{"best_validation": {"step": true, "valid_mrr": 0.5}}',
        '{"validation_baselines": {}}',
        '{"validation_baselines": {"rules": {"realistic": {}}}}',
    ],
)
def test_damaged_metrics_are_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "metrics.json").write_text(content)
    with pytest.raises(BundleError, match=r"metrics\.json, got: .*\. The file is damaged"):
        update_metrics(tmp_path, {"test": {}})
