// Small pieces that several views show: badges, bars, facts, tabs of a question.
import { el } from "../dom.js";
import { percent } from "../format.js";
import { href } from "../router.js";
import { entityName, relationInSentence, relationName } from "../names.js";

const STATUS = {
  known: ["Known", "badge-good", "The graph has this fact."],
  new: ["New", "badge-accent", "The graph does not have this fact."],
  held_out: ["Held out", "badge-warn", "A fact of the validation or test split: true, and not used in training."],
};

export const VERDICTS = { accept: "Accepted", reject: "Rejected", unsure: "Unsure" };
const VERDICT_BADGES = { accept: "badge-good", reject: "badge-bad", unsure: "badge-warn" };

/** What an answer is: known, new or held out. */
export function statusOf(answer) {
  return answer.status ?? (answer.known ? "known" : "new");
}

export function statusBadge(status) {
  const [text, badge, meaning] = STATUS[status] ?? [status, "", ""];
  return el(`span.badge.${badge}`, { title: meaning }, text);
}

export function verdictBadge(verdict) {
  return el(`span.badge.${VERDICT_BADGES[verdict]}`, {}, VERDICTS[verdict]);
}

/** A probability as a bar and a number; `spread` draws how much it varies. */
export function probabilityBar(probability, { spread = null } = {}) {
  const bar = el("span.bar", { "aria-hidden": "true" }, el("span.bar-value"));
  bar.style.setProperty("--value", probability);
  if (spread) {
    const low = Math.max(0, spread.probability_mean - spread.probability_deviation);
    const high = Math.min(1, spread.probability_mean + spread.probability_deviation);
    bar.style.setProperty("--low", low);
    bar.style.setProperty("--high", Math.max(high, low + 0.008));
    bar.append(el("span.bar-spread"));
  }
  return el("span.probability", {}, bar, el("span.number", {}, percent(probability)));
}

/** A share of a whole as a thin bar without a number. */
export function thinBar(share) {
  const bar = el("span.bar.bar-thin", { "aria-hidden": "true" }, el("span.bar-value"));
  bar.style.setProperty("--value", Math.max(0, Math.min(1, share)));
  return bar;
}

/** An entity as a link to what is around it. */
export function entityLink(name) {
  return el("a.entity", { href: href("graph", { name }), title: name }, entityName(name));
}

/** A fact on one line: head, relation in an arrow, tail. */
export function factText(fact, { links = false } = {}) {
  const end = (name) => (links ? entityLink(name) : el("span.entity", { title: name }, entityName(name)));
  return el(
    "span.fact",
    {},
    end(fact.head),
    " ",
    el("span.arrow", { title: fact.relation }, relationName(fact.relation), el("span", { "aria-hidden": "true" }, " →")),
    " ",
    end(fact.tail),
  );
}

/** A path on one line; a step against its fact's direction has its arrow turned. */
export function pathText(path) {
  const words = [el("span.entity", { title: path.steps[0]?.start }, entityName(path.steps[0]?.start ?? ""))];
  for (const step of path.steps) {
    const relation = relationName(step.relation);
    const spoken = step.backwards ? ` (read backwards) ` : " ";
    const arrow = step.backwards ? [mark("← "), relation] : [relation, mark(" →")];
    words.push(" ", el("span.arrow", { title: step.relation }, arrow, el("span.visually-hidden", {}, spoken)), " ");
    words.push(el("span.entity", { title: step.end }, entityName(step.end)));
  }
  return el("span.fact", {}, words);
}

const mark = (sign) => el("span", { "aria-hidden": "true" }, sign);

/** A question in words: what is left empty is what is asked. */
export function questionSentence({ head, relation, tail }) {
  const entity = (name) => el("strong", { title: name }, entityName(name));
  const link = () => el("em", { title: relation }, relationInSentence(relation));
  if (head && relation && !tail) return el("span", {}, entity(head), " ", link(), " ", el("strong.asked", {}, "what"), "?");
  if (!head && relation && tail) return el("span", {}, el("strong.asked", {}, "What"), " ", link(), " ", entity(tail), "?");
  if (head && tail && !relation) {
    return el("span", {}, el("strong.asked", {}, "How"), " is ", entity(head), " related to ", entity(tail), "?");
  }
  if (head && relation && tail) return el("span", {}, "Does ", entity(head), " — ", link(), " → ", entity(tail), " hold?");
  return null;
}

/** The same in plain text, for titles. */
export const questionText = (question) => questionSentence(question)?.textContent ?? "Ask";

/** The names that are given of a question in an address. */
export function questionOf(params) {
  return Object.fromEntries(["head", "relation", "tail"].map((key) => [key, params.get(key) || undefined]));
}

/** The views of one question: answers, why, compare, what if. */
export function questionTabs(current, question, answer) {
  const asked = { ...question };
  const tabs = [["ask", "Answers", asked]];
  if (answer && question.relation) {
    const fact = { head: answer, tail: answer, ...given(question) };
    const asksFor = question.tail ? "head" : "tail";
    tabs.push(["why", "Why", { ...fact, asks_for: asksFor === "head" ? "head" : undefined }]);
  }
  if (question.relation) tabs.push(["compare", "Compare", { ...asked, first: answer }]);
  tabs.push(["what-if", "What if", { ...asked, answer }]);
  const link = ([name, text, params]) =>
    el("li", {}, el("a", { href: href(name, params), "aria-current": name === current ? "page" : null }, text));
  return el("nav.tabs", { "aria-label": "This question" }, el("ul", {}, tabs.map(link)));
}

function given(question) {
  return Object.fromEntries(Object.entries(question).filter(([, value]) => value));
}

/** The top of a view: heading, lead and buttons. */
export function viewHead(title, lead, ...buttons) {
  return el(
    "header.view-head",
    {},
    el("div.stack.stack-tight", {}, el("h1", {}, title), lead && el("p.lead.soft", {}, lead)),
    buttons.length > 0 && el("div.row", {}, buttons),
  );
}

/** A field with its label. */
export function labelled(label, control, hint) {
  return el(
    "div.field",
    {},
    el("label.label", { for: control.id }, label),
    control,
    hint && el("p.hint", { id: `${control.id}-hint` }, hint),
  );
}

/** A select of [value, text] pairs. */
export function select(id, pairs, chosen, onChange) {
  const options = pairs.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text));
  return el("select", { id, on: { change: (event) => onChange?.(event.target.value) } }, options);
}
