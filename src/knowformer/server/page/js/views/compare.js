// Compare: why one answer and not another, the evidence of each side by side.
import { api } from "../api.js";
import { Combobox } from "../components/combobox.js";
import { copyLink } from "../components/copy_link.js";
import { counted, percent, rank } from "../format.js";
import { el, fill } from "../dom.js";
import { empty, fillWhenReady } from "../components/notice.js";
import { entityName, learnExplanation } from "../names.js";
import { factText, questionOf, questionSentence, questionTabs, viewHead } from "../components/pieces.js";
import { go, href } from "../router.js";
import { losses, pathList, standing } from "../components/explanation.js";
import { pathFacts } from "../components/path_layout.js";

export const view = {
  section: "ask",
  title: (params) => `Why ${entityName(params.get("first") ?? "one")} and not ${entityName(params.get("second") ?? "another")}?`,

  render(outlet, params, { signal }) {
    const question = questionOf(params);
    const [first, second] = [params.get("first") || undefined, params.get("second") || undefined];
    const body = el("div.stack");
    const title = first && second ? view.title(params) : "Compare two answers";
    const tabs = question.relation && (question.head || question.tail) ? questionTabs("compare", question, first) : null;
    fill(outlet, tabs, viewHead(title, questionSentence(question), first && second && copyLink()), chooser(question, first, second), body);
    if (!question.relation || !(question.head || question.tail)) {
      return fill(body, empty("No question yet", "Ask for a head or a tail first, then choose two of the answers.", el("a.button", { href: href("ask") }, "Ask")));
    }
    if (!first || !second) return fill(body, empty("Two answers, side by side", "Choose both above to see what speaks for each."));
    const draw = (comparison) => drawBoth(comparison, question);
    return fillWhenReady(body, api.compare({ ...question, first, second }, signal), draw, {
      sentence: "Looking for reasons on both sides",
      lines: 9,
      onSuggestion: (name, problem) => go("compare", { ...question, first, second, [problem.message.includes(`'${first}'`) ? "first" : "second"]: name }),
    });
  },
};

function chooser(question, first, second) {
  const fields = [
    new Combobox({ label: "First answer", kind: "entity", id: "compare-first", value: first }),
    new Combobox({ label: "Second answer", kind: "entity", id: "compare-second", value: second }),
  ];
  const submit = (event) => {
    event.preventDefault();
    go("compare", { ...question, first: fields[0].value, second: fields[1].value });
  };
  const swap = () => go("compare", { ...question, first: second, second: first });
  return el(
    "form.card.compare-form",
    { "aria-label": "Answers to compare", on: { submit } },
    fields.map((field) => field.element),
    el("button.button.button-main", { id: "compare-go" }, "Compare"),
    el("button.button", { type: "button", id: "compare-swap", disabled: !(first && second), on: { click: swap } }, "Swap"),
  );
}

function drawBoth({ first, second }, question) {
  for (const side of [first, second]) learnExplanation(side.explanation);
  const [here, there] = [first, second].map((side) => pathFacts(side.explanation.paths));
  const shared = here.filter((fact) => there.some((other) => other.key === fact.key));
  return el(
    "div.stack.stack-loose.appear",
    {},
    el("p.summary", {}, verdict(first, second, shared)),
    el("div.sides", {}, drawSide(first, question), drawSide(second, question)),
    shared.length > 0 &&
      el("section.stack", {}, el("h2", {}, "Evidence that both share"), el("ul.facts-plain", {}, shared.map((fact) => el("li", {}, factText(fact))))),
  );
}

function verdict(first, second, shared) {
  const [a, b] = [entityName(first.entity), entityName(second.entity)];
  const places = Math.abs(first.rank - second.rank);
  const order =
    places === 0
      ? `${a} and ${b} stand equal`
      : `${first.rank < second.rank ? a : b} stands ${counted(places, "place")} above ${first.rank < second.rank ? b : a}`;
  const odds = `${a} has ${percent(first.probability)} at rank ${rank(first.rank)}, ${b} has ${percent(second.probability)} at rank ${rank(second.rank)}`;
  const overlap = shared.length > 0 ? `${counted(shared.length, "fact")} speak for both.` : "No fact speaks for both: the reasons are different ones.";
  return `${order}: ${odds}. ${overlap}`;
}

function drawSide(side, question) {
  const asksFor = question.tail ? "head" : "tail";
  const why = href("why", { ...question, [asksFor]: side.entity, asks_for: asksFor === "head" ? "head" : undefined });
  return el(
    "section.card.stack",
    { "aria-label": entityName(side.entity) },
    el("div.row.row-ends", {}, el("h2", {}, entityName(side.entity)), el("a.small", { href: why }, "All reasons")),
    standing(side.explanation),
    el("hr"),
    pathList(side.explanation),
    el("hr"),
    losses(side.explanation),
  );
}
