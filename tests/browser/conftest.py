"""The workbench as people use it: a real server, a real browser, a run trained in seconds.

A worker of pytest-xdist has one server for all tests that only read; tests that write have another,
so that nobody reads what they wrote.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.workbench import Workbench, is_required, serving
from tests.integration.conftest import COMMAND, TINY, environment, family_triples, make_once

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDE = {"width": 1280, "height": 860}

Visit = Callable[..., Workbench]


# Playwright keeps an event loop in the main thread while it runs, so that tests elsewhere could not
# start one: it ends when the next test is of another folder.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None and is_required():
        pytest.fail(f"a Chromium must be here, and none of {', '.join(NAMES)} is installed")
    if path is None:
        pytest.skip(f"no Chromium here: none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        # Its sandbox needs rights that a container lacks; all it visits is our own page.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def family_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight families, f0 to f7, and a model that has learned a little about them."""

    def make(folder: Path) -> None:
        facts = folder / "families.tsv"
        facts.write_text("\n".join(family_triples("f", 8)), encoding="utf-8")
        arguments = ["train", facts, "--out", folder / "run", *TINY]
        arguments += ["--set", "training.max_epochs=12"]
        subprocess.run(
            [COMMAND, *map(str, arguments)],
            env=environment(folder / "cache"),
            check=True,
            capture_output=True,
        )

    return make_once(tmp_path_factory, "workbench_run", make) / "run"


@pytest.fixture(scope="session")
def address(family_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the server is."""
    with serving(family_run, tmp_path_factory.mktemp("serving")) as shown:
        yield shown


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """Opens a view in a tab of its own; nothing may go wrong in it until the test ends."""
    opened: list[Workbench] = []

    def run(
        view: str, *, at: str = address, of: dict[str, Any] | None = None, **names: str
    ) -> Workbench:
        settings = {"viewport": WIDE, "reduced_motion": "reduce"} | (of or {})
        page = browser.new_context(**settings).new_page()
        opened.append(Workbench(page, at))
        return opened[-1].open(view, **names)

    yield run
    for workbench in opened:
        workbench.page.context.close()
    assert [fault for workbench in opened for fault in workbench.faults] == []
