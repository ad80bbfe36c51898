"""Draws docs/images/workbench/*.png: every view of the workbench, on a run of the embedded UMLS.

    knowformer train umls-pykeen --out runs/umls --max-minutes 4
    PYTHONPATH=. python scripts/picture_workbench.py runs/umls

Facts, decisions and a batch are written as a user writes them, to a store that is thrown away.
"""

import argparse
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.workbench import Workbench, serving

TARGET = Path(__file__).parent.parent / "docs" / "images" / "workbench"
COLOURS = 256  # of a palette: a third of the bytes
LARGEST = 150_000  # bytes of a picture

QUESTION = {"head": "congenital_abnormality", "relation": "complicates"}
ANSWER = "anatomical_abnormality"  # held out from training; found, and carried by its paths
OTHER = "pathologic_function"
BATCH = "vitamin\taffects\t?\n?\ttreats\tneoplastic_process\nvitamine\taffects\t?\n"

View = tuple[str, dict[str, str]]
VIEWS: dict[str, View] = {
    "ask": ("ask", QUESTION),
    "why": ("why", QUESTION | {"tail": ANSWER}),
    "compare": ("compare", QUESTION | {"first": ANSWER, "second": OTHER}),
    "what_if": ("what-if", QUESTION | {"answer": ANSWER}),
    "graph": ("graph", {}),
    "entity": ("graph", {"name": QUESTION["head"]}),
    "facts": ("facts", {}),
    "decisions": ("decisions", {}),
    "batch": ("batch", {}),
    "model": ("model", {}),
}
WIDE = {"viewport": {"width": 1200, "height": 860}}
DARK = WIDE | {"color_scheme": "dark"}
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True}


def write_content(workbench: Workbench) -> None:
    """Adds and removes facts, decides, and has a batch answered."""
    page = workbench.page
    for head, relation, tail, why in (
        ("Vitamin D3", "isa", "vitamin", "the formulary of May lists it"),
        ("Vitamin D3", "affects", "organ_or_tissue_function", "bone metabolism, textbook"),
    ):
        workbench.open("facts", head=head, relation=relation, tail=tail)
        page.get_by_label("Why").fill(why)
        page.get_by_label("Your name").fill("Ada")
        workbench.button("Add the fact").click()
        page.locator(".toast").first.wait_for()
    for place, verdict, note in (
        (0, "Accept", "two reviews agree"),
        (1, "Reject", "too general to be of use"),
        (2, "Unsure", ""),
    ):
        workbench.open("ask", **QUESTION, new="1")
        page.get_by_role("button", name="Decide on").nth(place).click()
        page.get_by_role("dialog").get_by_text(verdict, exact=True).click()
        page.get_by_role("dialog").get_by_label("Note").fill(note)
        workbench.button("Save the decision").click()
        page.locator(".toast").first.wait_for()
    workbench.open("batch")
    page.get_by_text("Paste rows instead").click()
    page.get_by_label("Rows, a tab between columns").fill(BATCH)
    workbench.button("Start").click()
    page.get_by_text("Done", exact=True).first.wait_for()


def switch_off(workbench: Workbench) -> None:
    """Leaves out the strongest evidence, to see the ranking move."""
    workbench.page.get_by_role("switch").first.uncheck()
    workbench.page.get_by_role("main").get_by_text("1 fact off").wait_for()


BEFORE: dict[str, Callable[[Workbench], None]] = {"what_if": switch_off}


def save(page: Page, name: str) -> None:
    """Writes what is seen, with few colours."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)  # what appears has appeared
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    TARGET.mkdir(parents=True, exist_ok=True)
    path = TARGET / f"{name}.png"
    shot.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"Expected at most {LARGEST:,} bytes, got {size:,} in {path}.")


def draw(browser: Browser, address: str, names: list[str]) -> None:
    """Visits the views, wide, then one in the dark and one on a phone."""
    wide = Workbench(browser.new_context(**WIDE, reduced_motion="reduce").new_page(), address)
    write_content(wide)
    kinds = [(name, name, WIDE) for name in VIEWS]
    kinds += [("why_dark", "why", DARK), ("ask_phone", "ask", PHONE)]
    for name, view, settings in kinds:
        if names and name not in names:
            continue
        page = browser.new_context(**settings, reduced_motion="reduce").new_page()
        workbench = Workbench(page, address).open(VIEWS[view][0], **VIEWS[view][1])
        BEFORE.get(view, lambda _: None)(workbench)
        save(page, name)
        page.context.close()


def main() -> None:
    """Serves a run and draws its views."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("names", nargs="*", help="draw these alone")
    arguments = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        serving(arguments.run, Path(folder)) as address,
        sync_playwright() as playwright,
    ):
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        draw(browser, address, arguments.names)


if __name__ == "__main__":
    main()
