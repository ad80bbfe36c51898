"""Every view: usable without a mouse and with little sight, in light and dark, on a phone."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.workbench import Workbench, serving

AXE = (Path(__file__).parent / "vendor/axe-core/axe.min.js").read_text(encoding="utf-8")
QUESTION = {"head": "f0_ann", "relation": "parent_of"}
VIEWS: dict[str, tuple[str, dict[str, str]]] = {
    "start": ("ask", {}),
    "answers": ("ask", QUESTION | {"samples": "4"}),
    "fault": ("ask", QUESTION | {"head": "f0_anne"}),
    "why": ("why", QUESTION | {"tail": "f0_cy"}),
    "compare": ("compare", QUESTION | {"first": "f0_cy", "second": "f0_di"}),
    "what if": ("what-if", QUESTION | {"answer": "f0_cy"}),
    "graph": ("graph", {}),
    "entity": ("graph", {"name": "f0_ann"}),
    "facts": ("facts", {}),
    "decisions": ("decisions", {}),
    "batch": ("batch", {}),
    "model": ("model", {}),
}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}


def serious_faults(workbench: Workbench, *rules: str) -> list[str]:
    """What axe-core calls serious or critical, with the elements; by all rules, or by some."""
    # Evaluated by the browser's own protocol: the page's policy lets no other script in.
    workbench.page.evaluate(AXE)
    options = {"runOnly": list(rules)} if rules else {}
    found: dict[str, Any] = workbench.page.evaluate("how => axe.run(document, how)", options)
    return [
        f"{fault['id']}: {[node['html'][:120] for node in fault['nodes']]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_accessible_in_light_and_dark_and_fits_a_phone(visit: Visit, name: str) -> None:
    view, names = VIEWS[name]
    workbench = visit(view, **names)
    assert serious_faults(workbench) == []
    workbench.page.emulate_media(color_scheme="dark")
    assert serious_faults(workbench, "color-contrast") == []  # colours are all that is different
    workbench.page.set_viewport_size({"width": 360, "height": 740})
    assert width_of(workbench) <= 360


def width_of(workbench: Workbench) -> int:
    return workbench.page.evaluate("document.documentElement.scrollWidth")


def test_dialogs_and_lists_have_no_serious_fault(visit: Visit) -> None:
    workbench = visit("ask", **QUESTION)
    workbench.field("Tail").click()
    expect(workbench.page.get_by_role("option").first).to_be_visible()
    assert serious_faults(workbench) == []
    workbench.keys("Escape")
    workbench.page.get_by_role("button", name="Decide on").first.click()
    expect(workbench.page.get_by_role("dialog")).to_be_visible()
    assert serious_faults(workbench) == []


def test_a_graph_is_drawn_on_a_phone(visit: Visit) -> None:
    workbench = visit("why", of=PHONE, **VIEWS["why"][1])
    workbench.page.locator(".graph-canvas[data-ready]").wait_for()
    assert width_of(workbench) <= 360


def test_every_section_is_reached_from_the_list_of_them(visit: Visit) -> None:
    workbench = visit("ask")
    page = workbench.page
    sections = page.get_by_role("navigation", name="Views")
    for name in ("Graph", "Facts", "Decisions", "Batch", "Model"):
        sections.get_by_role("link", name=name).click()
        expect(page.locator("h1")).to_have_text(name)
        expect(page.locator("h1")).to_be_focused()
        expect(sections.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")
        assert page.title() == f"{name} · knowformer"


def test_the_first_key_skips_to_the_content(visit: Visit) -> None:
    workbench = visit("graph").keys("Tab")
    expect(workbench.link("Skip to content")).to_be_focused()
    workbench.keys("Enter")
    expect(workbench.page.locator("main")).to_be_focused()
    assert "#/graph" in workbench.page.url


def test_the_graph_has_counts_findings_and_neighbours(visit: Visit) -> None:
    workbench = visit("graph")
    page = workbench.page
    expect(page.get_by_label("Counts")).to_contain_text("entities")
    expect(page.get_by_label("Findings").get_by_role("listitem").first).to_be_visible()
    expect(page.get_by_label("Relations").get_by_role("link", name="parent of")).to_be_visible()
    workbench.fill("Look around an entity", "f5_ann")
    workbench.button("Look around").click()
    expect(page.locator("h1")).to_have_text("f5 ann")
    workbench.settled().page.locator(".graph-canvas[data-ready]").wait_for()
    page.get_by_label("By relation").get_by_role("link", name="parent of").click()
    expect(workbench.settled().rows("Facts of f5 ann")).to_have_count(2)


def test_the_model_is_shown_beside_its_baselines(visit: Visit) -> None:
    rows = visit("model").rows("Measures")
    expect(rows.filter(has_text="This model")).to_have_count(1)
    expect(rows.filter(has_text="Popularity")).to_have_count(1)


def test_a_server_that_is_gone_is_said_and_tried_again(visit: Visit) -> None:
    workbench = visit("ask")
    workbench.page.context.set_offline(True)
    workbench.link("Decisions").click()
    expect(workbench.page.get_by_role("alert")).to_contain_text("The server does not answer.")
    workbench.page.context.set_offline(False)
    workbench.button("Try again").click()
    expect(workbench.page.get_by_role("alert")).to_have_count(0)


def test_a_token_is_asked_for_and_a_reader_writes_nothing(
    visit: Visit, family_run: Path, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens.txt"
    reader = "a-token-of-a-reader-0123456789abcdef"
    tokens.write_text(f"read {reader}\n", encoding="utf-8")
    with serving(family_run, tmp_path, "--token-file", str(tokens)) as address:
        workbench = visit("ask", at=address, **QUESTION)
        page = workbench.page
        page.get_by_label("Token").first.fill("wrong")
        workbench.button("Continue").first.click()
        expect(page.get_by_label("Token").first).to_be_visible()
        page.get_by_label("Token").first.fill(reader)
        workbench.button("Continue").first.click()
        expect(workbench.settled().rows("Answers").first).to_be_visible()
        page.get_by_role("button", name="Decide on").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("You may read, not decide")
        workbench.button("Close").click()
        workbench.link("Facts").click()
        expect(page.get_by_text("Your token may read, not write.")).to_be_visible()
