// Ranked answers: a table to filter, page, compare, decide on and export.
import { count, counted, csv, percent } from "../format.js";
import { decide } from "./decide.js";
import { el, fill } from "../dom.js";
import { empty } from "./notice.js";
import { href } from "../router.js";
import { icon } from "../icons.js";
import { announce } from "../live.js";
import { nameOf } from "../names.js";
import { pager } from "./pager.js";
import { probabilityBar, statusBadge, statusOf, verdictBadge } from "./pieces.js";
import { saveBlob } from "../api.js";
import { table } from "./table.js";

const SIZE = 10; // answers on a page

/** The answers of one question. `verdicts` maps facts to decisions that were made on them. */
export class AnswerList {
  constructor(question, response, verdicts) {
    this.question = question;
    this.response = response;
    this.verdicts = verdicts;
    this.kind = response.query.asks_for === "relation" ? "relation" : "entity";
    this.text = "";
    this.status = "all";
    this.page = 0;
    this.marked = [];
    this.body = el("div.stack");
    this.comparing = el("div.comparing", { role: "region", "aria-label": "Compare", hidden: true });
    this.element = el("div.stack", {}, this.tools(), this.body, this.legend(), this.comparing);
    this.draw();
  }

  /** The fact that an answer stands for. */
  fact(answer) {
    const { head, relation, tail } = this.response.query;
    return { head, relation, tail, [this.response.query.asks_for]: this.name(answer) };
  }

  name(answer) {
    return answer.entity ?? answer.relation;
  }

  shown() {
    const text = this.text.toLowerCase();
    return this.response.answers.filter((answer) => {
      const isOfStatus = this.status === "all" || statusOf(answer) === this.status;
      const name = this.name(answer);
      return isOfStatus && (name.toLowerCase().includes(text) || nameOf(this.kind, name).toLowerCase().includes(text));
    });
  }

  tools() {
    const statuses = new Set(this.response.answers.map(statusOf));
    const kinds = [["all", "All"], ["new", "New"], ["known", "Known"], ["held_out", "Held out"]].filter(
      ([value]) => value === "all" || statuses.has(value),
    );
    const segment = ([value, text]) =>
      el("button", { type: "button", "aria-pressed": String(this.status === value), on: { click: (event) => this.filterBy(value, event.target) } }, text);
    const filter = el("input.input.filter", {
      id: "answers-filter",
      type: "search",
      placeholder: "Filter by name",
      "aria-label": "Filter answers by name",
      on: { input: (event) => this.filterText(event.target.value) },
    });
    const save = el("button.button", { type: "button", on: { click: () => this.export() } }, icon("download"), "CSV");
    return el(
      "div.row.row-ends",
      {},
      el("div.row", {}, kinds.length > 2 && el("div.segments", { role: "group", "aria-label": "Show" }, kinds.map(segment)), filter),
      save,
    );
  }

  filterText(text) {
    this.text = text.trim();
    this.page = 0;
    this.draw();
    announce(counted(this.shown().length, "answer"));
  }

  filterBy(status, button) {
    this.status = status;
    this.page = 0;
    for (const each of button.parentElement.children) each.setAttribute("aria-pressed", String(each === button));
    this.draw();
    announce(counted(this.shown().length, "answer"));
  }

  draw() {
    const answers = this.shown();
    const first = this.page * SIZE;
    const rows = answers.slice(first, first + SIZE);
    const onPage = (page) => {
      this.page = page;
      this.draw();
      document.getElementById("answers-table")?.focus();
    };
    const content =
      rows.length === 0
        ? empty("No such answer", "None of the answers passes the filter.")
        : el("div", { id: "answers-table", tabindex: -1 }, this.table(rows));
    fill(this.body, content, pager({ page: this.page, size: SIZE, total: answers.length, onPage }));
    this.drawComparing();
  }

  table(rows) {
    const columns = [
      { title: "Rank", kind: "number", cell: (answer) => count(answer.rank) },
      { title: "Answer", kind: "main", cell: (answer) => this.nameCell(answer) },
      { title: "Probability", cell: (answer) => this.probabilityCell(answer) },
      { title: "Status", cell: (answer) => this.statusCell(answer) },
    ];
    if (rows.some((answer) => answer.typical_rank)) {
      const hint = "Median rank of the same answer for other questions of this relation";
      columns.push({ title: "Elsewhere", kind: "number", hint, cell: (answer) => (answer.typical_rank ? count(answer.typical_rank) : "") });
    }
    columns.push({ title: "Actions", kind: "actions", hideTitle: true, cell: (answer) => this.actions(answer) });
    return table("Answers, best first", columns, rows);
  }

  nameCell(answer) {
    const name = this.name(answer);
    const shown = nameOf(this.kind, name);
    return [el("a.answer-name", { href: this.why(answer), title: name }, shown), answer.label && answer.label !== name && el("div.small.soft", {}, name)];
  }

  why(answer) {
    const asksFor = this.response.query.asks_for;
    return href("why", { ...this.fact(answer), asks_for: asksFor === "head" ? "head" : undefined });
  }

  probabilityCell(answer) {
    const { spread } = answer;
    const varies = spread && el("div.small.soft.number", {}, `± ${percent(spread.probability_deviation)} over ${count(spread.samples)} times`);
    return [probabilityBar(answer.probability, { spread }), varies];
  }

  statusCell(answer) {
    const verdict = this.verdicts.get(Object.values(this.fact(answer)).join("\t"));
    return el("span.row", {}, statusBadge(statusOf(answer)), verdict && verdictBadge(verdict));
  }

  actions(answer) {
    const name = nameOf(this.kind, this.name(answer));
    const why = el("a.button.button-small", { href: this.why(answer), "aria-label": `Why ${name}?` }, "Why");
    const verdict = el(
      "button.button.button-small",
      { type: "button", "aria-label": `Decide on ${name}`, on: { click: () => this.decide(answer) } },
      "Decide",
    );
    return el("span.row", {}, why, verdict, this.kind === "entity" && this.compareBox(answer, name));
  }

  compareBox(answer, name) {
    const id = this.name(answer);
    const box = el("input", {
      type: "checkbox",
      "aria-label": `Compare ${name}`,
      on: { change: (event) => this.mark(id, event.target.checked) },
      set: { checked: this.marked.includes(id), value: id },
    });
    return el("label.check.small", { title: "Choose two to compare" }, box, "Compare");
  }

  mark(name, isMarked) {
    this.marked = this.marked.filter((each) => each !== name);
    if (isMarked) this.marked = [...this.marked, name].slice(-2);
    for (const box of this.body.querySelectorAll(".actions input")) box.checked = this.marked.includes(box.value);
    this.drawComparing();
  }

  drawComparing() {
    const [first, second] = this.marked;
    this.comparing.hidden = !first;
    if (!first) return;
    const shown = (name) => el("strong", {}, nameOf("entity", name));
    const link = el("a.button.button-main.button-small", { href: href("compare", { ...this.question, first, second }) }, "Compare");
    fill(this.comparing, second ? el("span", {}, shown(first), " and ", shown(second)) : el("span", {}, shown(first), " and … choose another"), second && link);
    announce(second ? "Two answers chosen; compare them below the table." : "One answer chosen to compare.");
  }

  async decide(answer) {
    const fact = this.fact(answer);
    const stored = await decide(fact, { rank: answer.rank, probability: answer.probability, isKnown: answer.known });
    if (!stored) return;
    this.verdicts.set(Object.values(fact).join("\t"), stored.verdict);
    this.draw();
  }

  legend() {
    const { query } = this.response;
    const kind =
      query.probability_kind === "calibrated" ? "Probabilities are calibrated on validation facts" : "Probabilities are the model's own, not calibrated";
    const basis = query.probability_basis ? ` (${counted(query.probability_basis.questions, "question")} of this relation)` : "";
    const elsewhere = this.response.answers.some((answer) => answer.typical_rank)
      ? " Elsewhere: the rank that the same answer typically has for other questions of this relation; where it is as good, the answer is merely popular."
      : "";
    return el("p.small.soft", {}, `${kind}${basis}.${elsewhere}`);
  }

  export() {
    const columns = ["rank", "head", "relation", "tail", "label", "probability", "score", "status", "typical_rank"];
    const rows = this.shown().map((answer) => ({ ...answer, ...this.fact(answer), status: statusOf(answer) }));
    saveBlob(new Blob([csv(columns, rows)], { type: "text/csv" }), "answers.csv");
  }
}
