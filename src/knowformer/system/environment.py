"""Hardware, versions and commit that a result was made with."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("knowformer", "torch", "numpy", "numba", "llvmlite", "safetensors")


def describe_environment() -> dict[str, Any]:
    """Returns a JSON-ready record of this machine and its software."""
    return {
        "versions": {"python": platform.python_version(), **_package_versions()},
        "commit": _commit(),
        "hardware": {
            "machine": platform.machine(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": _memory_gib(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
        },
        "system": platform.platform(),
    }


def available_memory() -> float | None:
    """Returns the bytes that a new process can use without pushing others out; None: unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    free = fields.get("MemAvailable")
    return None if free is None else 1024.0 * float(free.split()[0])


def total_memory() -> float | None:
    """Returns the bytes of memory that this machine has; None: unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return None


def _package_versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _commit() -> str | None:
    """Returns the source's commit, with '+dirty' for uncommitted changes; None if not a clone."""
    here = Path(__file__).resolve().parent
    try:
        commit = _git(here, "rev-parse", "HEAD")
        return f"{commit}+dirty" if _git(here, "status", "--porcelain", "--", ".") else commit
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory_gib() -> float | None:
    total = total_memory()
    return None if total is None else round(total / 2**30, 1)
