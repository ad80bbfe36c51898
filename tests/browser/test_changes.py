"""What is written: facts, decisions, batch jobs, and how they are taken back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visit
from tests.browser.workbench import Workbench, serving

CHANGES = "Changes, newest first"
DECISIONS = "Decisions, newest first"


@pytest.fixture(scope="module")
def address(family_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for those who write; each writes about entities of its own."""
    with serving(family_run, tmp_path_factory.mktemp("written")) as shown:
        yield shown


def change(workbench: Workbench, text: str) -> Locator:
    return workbench.rows(CHANGES).filter(has_text=text)


def answer(workbench: Workbench, name: str) -> Locator:
    """The row of one answer, wherever it is in the ranking."""
    workbench.page.get_by_label("Filter answers by name").fill(name)
    return workbench.rows("Answers")


def test_a_fact_is_added_seen_by_the_next_answer_and_undone(visit: Visit) -> None:
    workbench = visit("facts")
    page = workbench.page
    workbench.field("Head").fill("Newcomer")
    workbench.fill("Relation", "married")
    workbench.fill("Tail", "f6_di")
    page.get_by_label("Why").fill("the registry says so")
    page.get_by_label("Your name").fill("Ada")
    workbench.button("Add the fact").click()
    row = change(workbench, "Newcomer")
    expect(row).to_contain_text("the registry says so")
    expect(row).to_contain_text("Ada")
    workbench.open("ask", head="Newcomer", relation="married_to")
    expect(answer(workbench, "f6 di")).to_contain_text("Known")
    workbench.open("facts")
    change(workbench, "Newcomer").get_by_role("button", name="Undo").click()
    expect(change(workbench, "Newcomer").filter(has_text="undone")).to_have_count(1)
    workbench.open("ask", head="Newcomer", relation="married_to")
    expect(answer(workbench, "f6 di")).to_contain_text("New")


def test_a_relation_that_the_model_does_not_know_is_refused(visit: Visit) -> None:
    workbench = visit("facts", head="f0_ann", relation="marriedto", tail="f0_bob")
    workbench.button("Add the fact").click()
    alert = workbench.page.get_by_role("alert")
    expect(alert).to_contain_text("relation names, got 'marriedto'")
    alert.get_by_role("button", name="married_to", exact=True).click()
    expect(workbench.field("Relation")).to_have_value("married to")


def test_an_upload_is_checked_first_and_says_which_rows_are_at_fault(
    visit: Visit, tmp_path: Path
) -> None:
    file = tmp_path / "more.tsv"
    rows = ["Uploaded\tparent_of\tf6_cy", "f0_ann\tparent_of\tf0_cy", "Uploaded\tlikes\tf6_cy"]
    file.write_text("\n".join(rows), encoding="utf-8")
    workbench = visit("facts")
    page = workbench.page
    form = page.get_by_role("form", name="Upload facts")
    form.locator("input[type=file]").set_input_files(file)
    expect(form).to_contain_text("more.tsv")
    workbench.button("Check first").click()
    expect(form).to_contain_text("1 fact would be added, 1 known already, 1 row at fault.")
    expect(form).to_contain_text("Row 3:")
    expect(change(workbench, "Uploaded")).to_have_count(0)
    workbench.button("Add them").click()
    expect(form).to_contain_text("1 fact added, 1 known already, 1 row at fault.")
    workbench.open("facts")
    expect(change(workbench, "Uploaded")).to_have_count(1)


def test_a_fact_is_removed_with_a_reason(visit: Visit) -> None:
    workbench = visit("graph", name="f7_ann")
    page = workbench.page
    workbench.button("Remove f7_ann parent_of f7_di").click()
    dialog = page.get_by_role("dialog", name="Remove this fact?")
    dialog.get_by_label("Why").fill("a mistake")
    dialog.get_by_role("button", name="Remove it").click()
    expect(dialog).to_have_count(0)
    expect(workbench.button("Remove f7_ann parent_of f7_di")).to_have_count(0)
    workbench.open("facts")
    row = change(workbench, "a mistake").filter(has_text="Removed")
    row.get_by_role("button", name="Undo").click()
    workbench.open("graph", name="f7_ann")
    expect(workbench.button("Remove f7_ann parent_of f7_di")).to_have_count(1)


def test_an_answer_is_accepted_becomes_a_fact_and_is_taken_back(visit: Visit) -> None:
    workbench = visit("ask", head="f3_ann", relation="sibling_of", new="1")
    page = workbench.page
    name = workbench.rows("Answers").first.locator(".answer-name").inner_text()
    workbench.button(f"Decide on {name}").focus()
    workbench.keys("Enter")
    dialog = page.get_by_role("dialog", name="Is this fact right?")
    expect(dialog.get_by_role("radio", name="Accept")).to_be_focused()
    workbench.keys("ArrowRight", "ArrowLeft")  # to reject, and back
    dialog.get_by_label("Note").fill("seen together")
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Save the decision").click()
    expect(page.locator(".toast")).to_contain_text("Accepted.")
    workbench.open("decisions")
    row = workbench.rows(DECISIONS).filter(has_text="seen together")
    expect(row).to_contain_text("Accepted")
    expect(row).to_contain_text("rank 1")
    expect(row).to_contain_text("added to the graph")
    row.get_by_role("button", name="Take back").click()
    expect(workbench.rows(DECISIONS).filter(has_text="taken back")).to_have_count(1)


def test_decisions_are_noted_beside_answers_filtered_and_exported(visit: Visit) -> None:
    workbench = visit("why", head="f4_ann", relation="sibling_of", tail="f4_bob")
    page = workbench.page
    workbench.button("Decide").click()
    page.get_by_text("Reject", exact=True).click()
    expect(page.get_by_role("checkbox")).to_have_count(0)  # only what is accepted is added
    workbench.button("Save the decision").click()
    expect(page.locator(".toast")).to_contain_text("Rejected.")
    workbench.open("ask", head="f4_ann", relation="sibling_of")
    expect(answer(workbench, "f4 bob")).to_contain_text("Rejected")
    workbench.open("decisions", verdict="reject")
    expect(workbench.rows(DECISIONS).filter(has_text="f4 bob")).to_have_count(1)
    with page.expect_download() as download:
        workbench.button("Export decisions as TSV").click()
    assert "f4_bob" in Path(download.value.path()).read_text(encoding="utf-8")


def test_a_batch_is_answered_and_its_files_are_had(visit: Visit) -> None:
    workbench = visit("batch")
    page = workbench.page
    page.get_by_text("Paste rows instead").click()
    rows = "f0_ann\tparent_of\t?\n?\tmarried_to\tf0_bob\nf0_nobody\tparent_of\t?\n"
    page.get_by_label("Rows, a tab between columns").fill(rows)
    page.get_by_label("Answers each").select_option("3")
    workbench.button("Start").click()
    job = page.get_by_role("region", name="Jobs").get_by_role("listitem").first
    expect(job).to_contain_text("Done")
    expect(job).to_contain_text("1 row at fault")
    with page.expect_download() as answers:
        job.get_by_role("button", name="Answers").click()
    lines = Path(answers.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 2 * 3
    with page.expect_download() as rejected:
        job.get_by_role("button", name="Rows at fault").click()
    assert "f0_nobody" in Path(rejected.value.path()).read_text(encoding="utf-8")
