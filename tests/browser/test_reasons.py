"""Reasons: the paths as a graph and as a list, two answers side by side, and what if."""

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.workbench import Workbench

FACT = {"head": "f0_ann", "relation": "parent_of", "tail": "f0_cy"}
QUESTION = {"head": "f0_ann", "relation": "parent_of"}
RANKING = "Ranking after the change"


def drawn(workbench: Workbench) -> int:
    """How many entities can be chosen in the picture."""
    return workbench.page.get_by_label("Entity").locator("option").count() - 1


def test_why_says_where_it_stands_and_what_it_loses(visit: Visit) -> None:
    workbench = visit("why", **FACT)
    page = workbench.page
    expect(page.locator("h1")).to_have_text("Why f0 cy?")
    expect(page.get_by_label("Where the answer stands")).to_contain_text("of 32 candidates")
    paths = page.get_by_role("list", name="Paths that speak for the answer").get_by_role("listitem")
    expect(paths.first).to_contain_text("f0 ann")
    expect(paths.first).to_contain_text("Without it, odds")
    expect(page.get_by_role("heading", name="What it loses without them")).to_be_visible()
    expect(page.get_by_text("For comparison: without").first).to_be_visible()
    expect(page.get_by_role("heading", name="Prototypes", exact=True)).to_be_visible()


def test_the_graph_is_hovered_dragged_and_grown(visit: Visit) -> None:
    workbench = visit("why", **FACT)
    page = workbench.page
    canvas = page.locator(".graph-canvas[data-ready]")
    before = canvas.screenshot()
    page.locator(".path").first.hover()
    lit = canvas.screenshot()
    assert lit != before
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 60, box["y"] + 52, steps=4)
    page.mouse.up()
    assert canvas.screenshot() != lit
    workbench.button("Show all").click()
    page.get_by_label("Entity").select_option("f0_cy")
    number = drawn(workbench)
    workbench.button("Neighbours").click()
    expect(page.locator("#live")).to_contain_text("of f0 cy added")
    assert drawn(workbench) > number
    workbench.link("Look around").click()
    expect(page.locator("h1")).to_have_text("f0 cy")


def test_an_answer_that_was_a_head_is_explained_as_one(visit: Visit) -> None:
    workbench = visit("ask", relation="parent_of", tail="f0_cy")
    workbench.page.get_by_label("Filter answers by name").fill("f0 bob")
    workbench.link("Why f0 bob?").click()
    expect(workbench.settled().page.locator("h1")).to_have_text("Why f0 bob?")
    assert "asks_for=head" in workbench.page.url
    workbench.link("Answers").click()
    expect(workbench.settled().field("Tail")).to_have_value("f0 cy")


def test_two_answers_are_chosen_and_compared(visit: Visit) -> None:
    workbench = visit("ask", **QUESTION)
    page = workbench.page
    boxes = page.get_by_role("checkbox")
    for number in (1, 0, 2):  # the third takes the first one's place
        boxes.nth(number).check()
    assert [boxes.nth(number).is_checked() for number in range(3)] == [True, False, True]
    page.get_by_role("region", name="Compare").get_by_role("link", name="Compare").click()
    expect(page.locator("h1")).to_contain_text("and not")
    expect(workbench.settled().page.locator(".summary")).to_contain_text("at rank")
    expect(page.locator(".sides > section")).to_have_count(2)
    before = page.locator("h1").inner_text()
    workbench.button("Swap").click()
    expect(page.locator("h1")).not_to_have_text(before)
    expect(workbench.settled().page.locator(".sides > section")).to_have_count(2)


def test_a_fact_is_switched_off_and_on_and_the_ranking_moves(visit: Visit) -> None:
    workbench = visit("what-if", **QUESTION, answer="f0_cy")
    page = workbench.page
    main = page.get_by_role("main")  # what a screen reader is told stands elsewhere
    expect(main.get_by_text("As the graph is.")).to_be_visible()
    switch = page.get_by_role("switch").first
    expect(switch).to_be_checked()
    as_it_is = workbench.rows(RANKING).all_inner_texts()
    switch.uncheck()
    expect(main.get_by_text("1 fact off, 0 supposed")).to_be_visible()
    assert "without=" in page.url
    without = workbench.rows(RANKING).all_inner_texts()
    assert without != as_it_is
    page.reload()
    workbench.settled()
    expect(main.get_by_text("1 fact off, 0 supposed")).to_be_visible()
    assert workbench.rows(RANKING).all_inner_texts() == without
    page.get_by_role("switch").first.focus()
    workbench.keys("Space")
    expect(main.get_by_text("As the graph is.")).to_be_visible()
    assert workbench.rows(RANKING).all_inner_texts() == as_it_is


def test_a_fact_is_supposed(visit: Visit) -> None:
    workbench = visit("what-if", **QUESTION)
    page = workbench.page
    main = page.get_by_role("main")
    page.get_by_text("Suppose a fact").click()
    workbench.fill("Relation", "married")
    workbench.fill("Tail", "f5_bob")
    workbench.button("Suppose it").click()
    expect(main.get_by_text("0 facts off, 1 supposed")).to_be_visible()
    workbench.button("Suppose it no longer").click()
    expect(main.get_by_text("As the graph is.")).to_be_visible()


def test_boxes_of_neighbouring_columns_do_not_meet(visit: Visit) -> None:
    gaps = visit("ask").page.evaluate(
        """async () => {
            const { boxOf, wrapped } = await import("./js/components/graph_style.js");
            const { sidewards } = await import("./js/components/path_layout.js");
            const names = ["experimental model of disease", "laboratory or test result", "x"];
            const depths = [0, 1 / 6, 1];
            const given = names.map((name, place) => [name, { x: depths[place], row: 0 }]);
            const at = [...sidewards(new Map(given))].map(([name, { x }]) => {
                const half = boxOf(wrapped(name)).width / 2;
                return [x - half, x + half];
            });
            return [at[1][0] - at[0][1], at[2][0] - at[1][1]];
        }"""
    )
    assert min(gaps) > 50  # a relation's name stands between


def test_what_if_names_a_misspelt_entity_once_and_takes_the_suggestion(visit: Visit) -> None:
    workbench = visit("what-if", **QUESTION | {"head": "f0_anne"})
    expect(workbench.page.get_by_role("alert")).to_have_count(1)
    workbench.button("f0_ann").click()
    expect(workbench.page.get_by_role("table", name=RANKING)).to_be_visible()
