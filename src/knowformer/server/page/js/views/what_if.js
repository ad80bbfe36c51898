// What if: switch facts off or suppose new ones, and see the ranking move. Nothing is stored.
import { announce } from "../live.js";
import { api } from "../api.js";
import { Combobox } from "../components/combobox.js";
import { count, counted, percent } from "../format.js";
import { debounced, el, fill } from "../dom.js";
import { empty, fillWhenReady, loading, wrong } from "../components/notice.js";
import { entityName, learn, learnExplanation, learnFacts, nameOf } from "../names.js";
import { factKey, factOf, pathFacts } from "../components/path_layout.js";
import { factText, questionOf, questionSentence, questionTabs, viewHead } from "../components/pieces.js";
import { go, href, rename } from "../router.js";
import { icon } from "../icons.js";
import { table } from "../components/table.js";

const K = 12;
const LISTED = 40; // facts of the question's entity that can be switched

export const view = {
  section: "ask",
  title: (params) => `What if: ${questionSentence(questionOf(params))?.textContent ?? ""}`,

  render(outlet, params, { signal }) {
    const question = questionOf(params);
    const given = Object.values(question).filter(Boolean).length;
    if (given !== 2) {
      const ask = el("a.button", { href: href("ask") }, "Ask");
      return fill(outlet, viewHead("What if?"), empty("No question yet", "Ask something first; then change facts and see what becomes of the answers.", ask));
    }
    return new WhatIf(outlet, question, params, signal).start();
  },
};

class WhatIf {
  constructor(outlet, question, params, signal) {
    this.outlet = outlet;
    this.question = question;
    this.answer = params.get("answer") || undefined;
    this.without = new Set(params.getAll("without"));
    this.with = new Set(params.getAll("with"));
    this.signal = signal;
    this.facts = el("div.stack");
    this.supposed = el("div.stack.stack-tight");
    this.ranking = el("div.stack", { "aria-live": "off" });
    this.askSoon = debounced(() => this.ask(), 250);
  }

  start() {
    const lead = "Switch a fact off, or suppose one that is not there. The model is asked again; nothing is stored.";
    fill(
      this.outlet,
      questionTabs("what-if", this.question, this.answer),
      viewHead("What if?", lead),
      el("p.question", {}, questionSentence(this.question)),
      el(
        "div.what-if",
        {},
        el("section.stack", {}, el("h2", {}, "Ranking"), this.ranking),
        el("section.stack", {}, el("h2", {}, "Facts"), this.supposed, this.supposeForm(), this.facts),
      ),
    );
    this.drawSupposed();
    fillWhenReady(this.facts, this.readFacts(), (groups) => this.drawFacts(groups), { sentence: "Loading facts", lines: 6 });
    this.ask();
  }

  async readFacts() {
    const { head, relation, tail } = this.question;
    const asksFor = tail ? "head" : "tail";
    const fact = { ...this.question, [asksFor]: this.answer };
    const names = [head, tail].filter(Boolean);
    const [explanation, ...around] = await Promise.all([
      this.answer && relation ? api.explain({ ...fact, asks_for: asksFor, paths: 5, prototypes: 5 }, this.signal).catch(() => null) : null,
      // An entity that is not there has none; the ranking says so.
      ...names.map((name) => api.entity({ name, limit: LISTED }, this.signal).catch((error) => noneIfUnknown(error, name))),
    ]);
    if (explanation) learnExplanation(explanation);
    for (const each of around) learnFacts(each.items);
    const evidence = explanation ? pathFacts(explanation.paths) : [];
    const seen = new Set(evidence.map(factKey));
    const others = [...this.without].map(factOf).filter((each) => !seen.has(factKey(each)));
    for (const each of others) seen.add(factKey(each));
    return [
      [this.answer && `Evidence for ${entityName(this.answer)}`, evidence],
      ["Switched off", others],
      ...around.map((each) => [`Facts of ${entityName(each.name)}`, each.items.filter((item) => !seen.has(factKey(item)))]),
    ].filter(([title, facts]) => title && facts.length > 0);
  }

  drawFacts(groups) {
    return groups.map(([title, facts]) =>
      el(
        "fieldset.stack.stack-tight",
        {},
        el("legend", {}, title),
        facts.map((fact) => this.toggle(fact)),
        facts.length >= LISTED && el("p.small.soft", {}, `The first ${count(LISTED)} facts.`),
      ),
    );
  }

  toggle(fact) {
    const key = factKey(fact);
    const change = (event) => {
      if (event.target.checked) this.without.delete(key);
      else this.without.add(key);
      this.changed();
    };
    const input = el("input", { type: "checkbox", role: "switch", on: { change }, set: { checked: !this.without.has(key) } });
    return el("label.check.switch.fact-switch", {}, input, factText(fact));
  }

  supposeForm() {
    const fields = [
      new Combobox({ label: "Head", kind: "entity", id: "suppose-head", value: this.question.head }),
      new Combobox({ label: "Relation", kind: "relation", id: "suppose-relation" }),
      new Combobox({ label: "Tail", kind: "entity", id: "suppose-tail", value: this.question.tail }),
    ];
    const submit = (event) => {
      event.preventDefault();
      const [head, relation, tail] = fields.map((field) => field.value);
      if (!head || !relation || !tail) return announce("A fact has all three.");
      this.with.add(factKey({ head, relation, tail }));
      this.drawSupposed();
      return this.changed();
    };
    return el(
      "details.card.suppose",
      {},
      el("summary", {}, "Suppose a fact"),
      el("form.stack", { on: { submit } }, fields.map((field) => field.element), el("div", {}, el("button.button.button-main", {}, "Suppose it"))),
    );
  }

  drawSupposed() {
    const item = (key) => {
      const drop = () => {
        this.with.delete(key);
        this.drawSupposed();
        this.changed();
      };
      return el(
        "li.row",
        {},
        el("span.badge.badge-accent", {}, "Supposed"),
        factText(factOf(key)),
        el("button.button.button-small.button-icon", { type: "button", "aria-label": "Suppose it no longer", on: { click: drop } }, icon("close")),
      );
    };
    fill(this.supposed, this.with.size > 0 && el("ul.stack.stack-tight", {}, [...this.with].map(item)));
  }

  changed() {
    rename("what-if", { ...this.question, answer: this.answer, without: [...this.without], with: [...this.with] });
    this.askSoon();
  }

  async ask() {
    this.canceller?.abort();
    this.canceller = new AbortController();
    this.signal.addEventListener("abort", () => this.canceller.abort());
    if (this.ranking.childElementCount === 0) fill(this.ranking, loading("The model is thinking", 8));
    this.ranking.setAttribute("aria-busy", "true");
    try {
      fill(this.ranking, this.drawRanking(await this.moves(this.canceller.signal)));
    } catch (error) {
      if (error.name === "AbortError") return;
      const onSuggestion = (name, { field }) => go("what-if", { ...this.question, [field]: name, answer: this.answer });
      fill(this.ranking, wrong(error, { onSuggestion: error.field ? onSuggestion : null }));
    }
    this.ranking.removeAttribute("aria-busy");
  }

  /** Each answer's place before and after; with nothing changed, the ranking as it is. */
  async moves(signal) {
    const asked = { ...this.question, k: K };
    if (this.without.size + this.with.size > 0) {
      const changes = { without: [...this.without].map(factOf), with: [...this.with].map(factOf) };
      return (await api.whatIf({ ...asked, ...changes }, signal)).moves;
    }
    const { answers } = await api.answer(asked, signal);
    return answers.map(({ rank, probability, ...named }) => ({
      ...named,
      rank_before: rank,
      rank_after: rank,
      probability_before: probability,
      probability_after: probability,
    }));
  }

  drawRanking(moves) {
    const kind = this.question.relation ? "entity" : "relation";
    const changes = this.without.size + this.with.size;
    const shown = [...moves].sort((a, b) => (a.rank_after ?? Infinity) - (b.rank_after ?? Infinity)).slice(0, K + 4);
    const moved = shown.filter((move) => move.rank_before !== move.rank_after).length;
    const name = (move) => move.entity ?? move.relation;
    for (const move of moves) learn(kind, name(move), move.label);
    const sentence =
      changes === 0
        ? "As the graph is. Switch something to see the ranking move."
        : `${counted(this.without.size, "fact")} off, ${count(this.with.size)} supposed: ${moved === 0 ? "no answer changes its place" : `${counted(moved, "answer")} of ${count(shown.length)} change their place`}.`;
    announce(sentence);
    const columns = [
      { title: "Rank", kind: "number", cell: (move) => (move.rank_after ? count(move.rank_after) : "–") },
      { title: "Moved", cell: (move) => moveBadge(move) },
      { title: "Answer", kind: "main", cell: (move) => el("span", { title: name(move) }, nameOf(kind, name(move))) },
      { title: "Probability", cell: (move) => beforeAfter(move) },
    ];
    const rowAttributes = (move) => ({ class: name(move) === this.answer ? "is-answer" : null });
    return el(
      "div.stack.appear",
      {},
      el("p.soft", {}, sentence),
      table("Ranking after the change", columns, shown, { rowAttributes }),
      moves.length === 0 && el("p.soft", {}, "Nothing can answer."),
    );
  }
}

function noneIfUnknown(error, name) {
  if (error.status !== 404) throw error;
  return { name, items: [] };
}

function moveBadge({ rank_before: before, rank_after: after }) {
  if (!before) return el("span.badge.badge-accent", {}, "new");
  if (!after) return el("span.badge.badge-bad", {}, "gone");
  if (before === after) return el("span.soft.small", {}, "–");
  const places = Math.abs(before - after);
  const isUp = after < before;
  return el(
    `span.move.${isUp ? "move-up" : "move-down"}`,
    {},
    el("span", { "aria-hidden": "true" }, `${isUp ? "▲" : "▼"} ${count(places)}`),
    el("span.visually-hidden", {}, `${isUp ? "up" : "down"} ${count(places)}, was ${count(before)}`),
  );
}

function beforeAfter({ probability_before: before, probability_after: after }) {
  const bar = el("span.bar.bar-double", { "aria-hidden": "true" }, el("span.bar-before"), el("span.bar-value"));
  bar.style.setProperty("--before", before ?? 0);
  bar.style.setProperty("--value", after ?? 0);
  const isSame = before !== null && before !== undefined && after !== null && percent(before) === percent(after ?? 0);
  const text = isSame ? percent(after) : `${before === null || before === undefined ? "–" : percent(before)} → ${after === null || after === undefined ? "–" : percent(after)}`;
  return el("span.probability.probability-wide", {}, bar, el("span.number.small", {}, text));
}
