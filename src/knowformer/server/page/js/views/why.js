// Why: the paths behind an answer, as a graph to explore and as a list, and what it loses without them.
import { api } from "../api.js";
import { Combobox } from "../components/combobox.js";
import { copyLink } from "../components/copy_link.js";
import { decide } from "../components/decide.js";
import { el, fill } from "../dom.js";
import { empty, fillWhenReady } from "../components/notice.js";
import { entityName, learnExplanation } from "../names.js";
import { bendOver, downwards, factKey, layeredPlaces, pathFacts, sidewards } from "../components/path_layout.js";
import { factText, questionOf, questionTabs, viewHead } from "../components/pieces.js";
import { go, href } from "../router.js";
import { GraphPanel } from "../components/graph_panel.js";
import { losses, pathList, prototypes, standing } from "../components/explanation.js";
import { oddsInWords } from "../format.js";

export const view = {
  section: "ask",
  title: (params) => `Why ${entityName(answerOf(params) ?? "")}?`,

  render(outlet, params, { signal }) {
    const fact = questionOf(params);
    if (!fact.head || !fact.relation || !fact.tail) return fill(outlet, viewHead("Why?"), noFact());
    const asksFor = params.get("asks_for") === "head" ? "head" : "tail";
    const answer = fact[asksFor];
    const question = { ...fact, [asksFor]: undefined };
    const body = el("div.stack");
    const headline = el("h1", {}, "Why ", el("span.answer-mark", {}, entityName(answer)), "?");
    const head = viewHead("", factText(fact, { links: true }), decideButton(fact), copyLink());
    head.querySelector("h1").replaceWith(headline);
    fill(outlet, questionTabs("why", question, answer), head, body);
    const asked = { ...fact, asks_for: asksFor, paths: 5, prototypes: 5 };
    fillWhenReady(body, api.explain(asked, signal), (explanation) => draw(explanation, question, answer, fact), {
      sentence: "Looking for reasons",
      lines: 9,
      onSuggestion: (name, problem) => go("why", corrected(fact, asksFor, name, problem)),
    });
  },
};

const answerOf = (params) => params.get(params.get("asks_for") === "head" ? "head" : "tail");

function noFact() {
  return empty("No fact to explain", "Ask a question first; every answer has a 'Why'.", el("a.button", { href: href("ask") }, "Ask"));
}

function corrected(fact, asksFor, name, problem) {
  const key = problem.field ?? Object.keys(fact).find((each) => problem.message.includes(`'${fact[each]}'`));
  return { ...fact, [key]: name, asks_for: asksFor === "head" ? "head" : undefined };
}

function decideButton(fact) {
  return el("button.button.button-main", { type: "button", id: "why-decide", on: { click: () => decide(fact) } }, "Decide");
}

function draw(explanation, question, answer, fact) {
  learnExplanation(explanation);
  const panel = explanation.paths.length > 0 ? pathGraph(explanation) : null;
  const facts = pathFacts(explanation.paths);
  const whatIf = href("what-if", { ...question, answer, without: facts.map(factKey) });
  return el(
    "div.stack.stack-loose.appear",
    {},
    el("section.card.stack", { "aria-label": "Where the answer stands" }, standing(explanation), summary(explanation)),
    el(
      "section.stack",
      {},
      el("h2", {}, "Paths that speak for it"),
      panel?.element,
      pathList(explanation, { onHover: (keys) => panel?.highlight(keys) }),
      facts.length > 0 && el("div", {}, el("a.button", { href: whatIf }, "What if these facts were not there?")),
    ),
    el("section.stack", {}, el("h2", {}, "What it loses without them"), losses(explanation)),
    el("section.stack", {}, el("h2", {}, "Prototypes"), el("p.soft.small", {}, "Entities that the answer gains by attending to."), prototypes(explanation)),
    explanation.asks_for && compareWith(question, answer),
  );
}

/** The whole in a sentence. */
function summary(explanation) {
  const paths = explanation.faithfulness.find((check) => check.evidence === "paths");
  if (!paths) return null;
  const says = {
    "carry the answer": "The paths below carry this answer",
    contribute: "The paths below are a part of the reason",
    "hardly matter": "The paths below hardly matter: the answer has other support",
    "are no better than random": "The paths below are no better than others at random: do not read them as the reason",
  };
  return el("p.summary", {}, `${says[paths.verdict]}. Without them, its ${oddsInWords(paths.loss.truth_log_odds)}.`);
}

function pathGraph(explanation) {
  const from = explanation.asks_for === "head" ? explanation.tail : explanation.head;
  const answer = explanation.asks_for === "head" ? explanation.head : explanation.tail;
  const facts = pathFacts(explanation.paths);
  const names = new Set([from, answer, ...facts.flatMap((fact) => [fact.head, fact.tail])]);
  const role = (name) => (name === answer ? "answer" : name === from ? "asked" : "");
  const asked = { head: explanation.head, relation: explanation.relation, tail: explanation.tail, role: "question", lost: 0 };
  const unit = layeredPlaces(explanation.paths, from, answer);
  const isDownwards = (width) => width < 560;
  const places = (width) => (isDownwards(width) ? downwards(unit, from, answer) : sidewards(unit));
  const bend = (width) => (explanation.asks_for === "head" ? 1 : -1) * (isDownwards(width) ? -360 : bendOver(unit));
  return new GraphPanel({
    label: `Graph of the paths from ${entityName(from)} to ${entityName(answer)}; the list below says the same.`,
    nodes: [...names].map((name) => ({ name, role: role(name) })),
    facts: [...facts, asked],
    places,
    bend,
  });
}

function compareWith(question, answer) {
  const field = new Combobox({ label: "Compare with another answer", kind: "entity", id: "why-compare", placeholder: "another candidate" });
  const submit = (event) => {
    event.preventDefault();
    if (field.value) go("compare", { ...question, first: answer, second: field.value });
  };
  return el("form.compare-with", { on: { submit } }, field.element, el("button.button", {}, "Compare"));
}
