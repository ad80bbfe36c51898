"""Asking: three fields, answers, and everything one does with them, by mouse and by keyboard."""

import csv
import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit

ANSWERS = "Answers, best first"


def test_a_question_is_said_back_asked_and_answered(visit: Visit) -> None:
    workbench = visit("ask")
    workbench.fill("Head", "f0_ann")
    workbench.fill("Relation", "parent")
    form = workbench.page.get_by_role("search", name="Question")
    expect(form).to_contain_text("f0 ann parent of what?")
    workbench.button("Ask").click()
    rows = workbench.settled().rows(ANSWERS)
    expect(rows).to_have_count(10)
    expect(rows.first).to_contain_text(re.compile(r"1.*\d\s%.*(Known|New|Held out)"))
    assert "#/ask?head=f0_ann&relation=parent_of" in workbench.page.url
    assert workbench.page.title() == "f0 ann parent of what? · knowformer"


def test_it_is_done_by_keyboard_alone(visit: Visit) -> None:
    workbench = visit("ask")
    page = workbench.page
    workbench.field("Head").focus()
    page.keyboard.type("f1_bo")
    options = page.get_by_role("option")
    expect(options.first).to_be_visible()
    expect(workbench.field("Head")).to_have_attribute("aria-expanded", "true")
    workbench.keys("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    active = workbench.field("Head").get_attribute("aria-activedescendant")
    assert active == options.first.get_attribute("id")
    workbench.keys("Enter")
    expect(workbench.field("Head")).to_have_value("f1 bob")
    expect(page.get_by_role("listbox")).to_have_count(0)
    workbench.field("Relation").focus()
    page.keyboard.type("sibl")
    expect(options.first).to_contain_text("sibling of")
    workbench.keys("ArrowDown", "Enter", "Enter")  # the second one asks
    expect(workbench.settled().rows(ANSWERS)).to_have_count(10)
    expect(page.locator("#live")).to_contain_text("First:")
    expect(workbench.field("Relation")).to_be_focused()
    page.locator(".actions a").first.focus()
    workbench.keys("Enter")
    expect(page.locator("h1")).to_be_focused()  # a new view: its heading is read


def test_escape_closes_the_list_then_clears_the_field(visit: Visit) -> None:
    workbench = visit("ask", head="f0_ann")
    field = workbench.field("Head")
    field.click()
    expect(workbench.page.get_by_role("option").first).to_be_visible()
    workbench.keys("Escape")
    expect(field).to_have_value("f0 ann")
    workbench.keys("Escape")
    expect(field).to_have_value("")


def test_heads_and_relations_are_asked_for_too(visit: Visit) -> None:
    heads = visit("ask", relation="parent_of", tail="f0_cy")
    expect(heads.page.locator("h2").first).to_have_text("What parent of f0 cy?")
    expect(heads.rows(ANSWERS)).to_have_count(10)
    relations = heads.open("ask", head="f0_ann", tail="f0_bob")
    expect(relations.rows(ANSWERS)).to_have_count(3)
    expect(relations.page.locator("h2").first).to_have_text("How is f0 ann related to f0 bob?")


def test_a_name_that_is_unknown_is_corrected_with_a_click(visit: Visit) -> None:
    workbench = visit("ask", head="f0_anne", relation="parent_of")
    alert = workbench.page.get_by_role("alert")
    expect(alert).to_contain_text("Expected one of")
    expect(alert).to_contain_text("got 'f0_anne'")
    alert.get_by_role("button", name="f0_ann", exact=True).click()
    expect(workbench.rows(ANSWERS)).to_have_count(10)
    assert "head=f0_ann&" in workbench.page.url


def test_answers_are_filtered_paged_and_narrowed(visit: Visit) -> None:
    workbench = visit("ask", head="f2_ann", relation="parent_of")
    page = workbench.page
    first = workbench.rows(ANSWERS).first.inner_text()
    workbench.button("Next page").click()
    expect(workbench.rows(ANSWERS).first).to_contain_text("11")
    workbench.button("Previous page").click()
    assert workbench.rows(ANSWERS).first.inner_text() == first
    page.get_by_label("Filter answers by name").fill("f3 CY")
    expect(workbench.rows(ANSWERS)).to_have_count(1)
    page.get_by_label("Filter answers by name").fill("nobody")
    expect(page.get_by_text("None of the answers passes the filter.")).to_be_visible()
    page.get_by_label("Filter answers by name").fill("")
    workbench.button("Known").click()
    expect(page.locator("td .badge", has_text="New")).to_have_count(0)
    page.get_by_role("switch", name="New facts only").check()
    expect(page.locator("td .badge", has_text="Known")).to_have_count(0)
    assert "new=1" in page.url
    expect(page.get_by_role("switch", name="New facts only")).to_be_focused()
    narrowed = workbench.open("ask", head="f2_ann", relation="parent_of", type="parent_of:tail")
    expect(narrowed.page.get_by_text("16 candidates")).to_be_visible()


def test_spread_shows_how_much_answers_vary(visit: Visit) -> None:
    workbench = visit("ask", head="f2_ann", relation="parent_of")
    workbench.page.get_by_label("Asked").select_option("4")
    expect(workbench.rows(ANSWERS).first).to_contain_text("over 4 times")
    assert "samples=4" in workbench.page.url


def test_answers_are_exported_as_they_are_shown(visit: Visit) -> None:
    workbench = visit("ask", head="f2_ann", relation="parent_of")
    workbench.page.get_by_label("Filter answers by name").fill("cy")
    with workbench.page.expect_download() as download:
        workbench.button("CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["head"] for row in rows} == {"f2_ann"}
    assert {row["tail"] for row in rows} == {f"f{number}_cy" for number in range(8)}
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)


def test_back_and_forward_return_to_what_was_asked(visit: Visit) -> None:
    workbench = visit("ask", head="f0_ann", relation="parent_of")
    page = workbench.page
    workbench.link("Graph").click()
    expect(page.locator("h1")).to_have_text("Graph")
    page.go_back()
    expect(workbench.settled().field("Head")).to_have_value("f0 ann")
    expect(workbench.rows(ANSWERS)).to_have_count(10)
    page.go_forward()
    expect(page.locator("h1")).to_have_text("Graph")


def test_an_example_is_offered_before_anything_is_asked(visit: Visit) -> None:
    workbench = visit("ask")
    workbench.page.locator(".example").first.click()
    expect(workbench.settled().rows(ANSWERS).first).to_be_visible()
