"""The workbench in a browser: goes to a view, waits until it is there, notes what goes wrong."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from playwright.sync_api import ConsoleMessage, Locator, Page, Request, expect

from tests.integration.conftest import COMMAND, environment

SECONDS = 60  # for an answer; a machine may be busy
expect.set_options(timeout=SECONDS * 1000)


@contextmanager
def serving(run: Path, folder: Path, *options: str) -> Iterator[str]:
    """Runs ``knowformer serve`` and yields the address that it prints; stops it as Ctrl-C does."""
    arguments = ["serve", str(run), "--port", "0", "--threads", "1", *options]
    process = subprocess.Popen(
        [COMMAND, *arguments, "--store", str(folder / "live.sqlite")],
        env=environment(folder / "cache") | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    assert process.stdout is not None
    with process:
        line = next((line for line in process.stdout if "http://" in line), "")
        try:
            yield line[line.index("http://") :].split()[0]
        finally:
            process.terminate()
            process.wait(SECONDS)


class Workbench:
    """One tab. ``faults`` are errors of scripts, of the policy, and visits to other places."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.faults: list[str] = []
        page.set_default_timeout(SECONDS * 1000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._note)
        page.on("request", self._check)

    def _note(self, message: ConsoleMessage) -> None:
        # The browser also reports answers that are errors; those are shown, and tests look at them.
        is_status = message.text.startswith("Failed to load resource")
        if message.type in ("error", "warning") and not is_status:
            self.faults.append(message.text)

    def _check(self, request: Request) -> None:
        if not request.url.startswith((self.address, "blob:", "about:")):
            self.faults.append(f"asked elsewhere: {request.url}")

    def open(self, view: str, **names: str) -> "Workbench":
        """Goes to an address as one that was shared: the page starts anew."""
        self.page.goto("about:blank")
        search = f"?{urlencode(names, quote_via=quote)}" if names else ""
        self.page.goto(f"{self.address}#/{view}{search}")
        return self.settled()

    def settled(self) -> "Workbench":
        """Waits until nothing is on its way."""
        self.page.locator("h1").first.wait_for()
        expect(self.page.locator("[aria-busy]")).to_have_count(0)
        return self

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def link(self, name: str) -> Locator:
        return self.page.get_by_role("link", name=name, exact=True)

    def field(self, label: str) -> Locator:
        return self.page.get_by_role("combobox", name=label, exact=True)

    def rows(self, table: str) -> Locator:
        """The rows of a table that is called so, without its head."""
        return self.page.get_by_role("table", name=table).locator("tbody").get_by_role("row")

    def keys(self, *names: str) -> "Workbench":
        """Presses keys, one after the other."""
        for name in names:
            self.page.keyboard.press(name)
        return self

    def fill(self, label: str, text: str) -> None:
        """Types into a field that searches, and takes the first that it offers."""
        self.field(label).fill(text)
        self.page.get_by_role("listbox", name=label).get_by_role("option").first.click()


def is_required() -> bool:
    """Tells whether a browser must be there."""
    return bool(os.environ.get("KNOWFORMER_NEEDS_BROWSER"))
