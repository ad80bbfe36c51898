"""What the guides and examples show runs, as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(code: str, folder: Path, environment: dict[str, str]) -> str:
    """Runs code in a process of its own, where no shape is checked."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_guide_runs(tmp_path: Path, command_environment: dict[str, str]) -> None:
    blocks = CODE.findall((ROOT / "docs" / "guides" / "python.md").read_text("utf-8"))
    assert len(blocks) > 5
    run("\n".join(blocks), tmp_path, command_environment)
    assert (tmp_path / "runs" / "nations" / "model.safetensors").exists()


def test_a_training_loop_of_ones_own_beats_popularity(
    tmp_path: Path, command_environment: dict[str, str]
) -> None:
    code = (ROOT / "examples" / "own_training_loop.py").read_text("utf-8")
    printed = run(code, tmp_path, command_environment)
    found = re.search(r"test MRR ([\d.]+), popularity ([\d.]+)", printed)
    assert found is not None
    assert float(found[1]) > float(found[2])
