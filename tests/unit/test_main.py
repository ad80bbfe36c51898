import subprocess
import sys

import knowformer


def run(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "knowformer", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def test_the_package_runs_as_the_command_does() -> None:
    assert run("--version") == f"knowformer {knowformer.__version__}\n"
    assert run("audit", "--help").startswith("Usage: knowformer audit ")
