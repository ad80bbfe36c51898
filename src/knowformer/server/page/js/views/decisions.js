// Decisions: what was accepted, rejected or left open, by whom and why.
import { api } from "../api.js";
import { count, moment, percent } from "../format.js";
import { el, fill } from "../dom.js";
import { empty, fillWhenReady } from "../components/notice.js";
import { exportButtons } from "../components/export_buttons.js";
import { factText, verdictBadge, viewHead, VERDICTS } from "../components/pieces.js";
import { again, go, href } from "../router.js";
import { icon } from "../icons.js";
import { learnFacts } from "../names.js";
import { mayWrite } from "../session.js";
import { table } from "../components/table.js";
import { toast } from "../live.js";

const LIMIT = 100;

export const view = {
  title: () => "Decisions",

  render(outlet, params, { signal }) {
    const body = el("section.stack", { "aria-label": "Decisions" });
    const lead = "What people have said about facts that the model proposes.";
    fill(outlet, viewHead("Decisions", lead, exportButtons("decisions", api.exportDecisions)), body);
    const reads = Promise.all([api.decisions({ limit: LIMIT, before: params.get("before") }, signal), mayWrite()]);
    fillWhenReady(body, reads, ([page, canWrite]) => draw(page, params, canWrite), { lines: 6 });
  },
};

function draw({ items, next }, params, canWrite) {
  learnFacts(items);
  if (items.length === 0) {
    const ask = el("a.button.button-main", { href: href("ask") }, "Ask");
    return empty("No decision yet", "Ask a question, look at the reasons, and accept or reject what the model proposes.", ask);
  }
  const verdict = params.get("verdict") ?? "all";
  const current = items.filter((item) => !item.undone);
  const shown = verdict === "all" ? items : current.filter((item) => item.verdict === verdict);
  const segment = (value, text) => {
    const click = () => go("decisions", { verdict: value === "all" ? undefined : value });
    return el("button", { id: `verdict-${value}`, type: "button", "aria-pressed": String(verdict === value), on: { click } }, text);
  };
  const numbers = Object.entries(VERDICTS).map(([value, text]) =>
    segment(value, `${text} ${count(current.filter((item) => item.verdict === value).length)}`),
  );
  const columns = [
    { title: "Verdict", cell: (item) => el("span.row", {}, verdictBadge(item.verdict), item.undone && el("span.badge.badge-plain", {}, "taken back")) },
    { title: "Fact", kind: "main", cell: factCell },
    { title: "Then", cell: thenCell },
    { title: "Who and when", cell: (item) => [el("div", {}, item.author || "–"), el("div.moment", {}, moment(item.time))] },
    { title: "Actions", kind: "actions", hideTitle: true, cell: (item) => actions(item, canWrite) },
  ];
  return el(
    "div.stack.appear",
    {},
    el("div.segments.segments-wide", { role: "group", "aria-label": "Show" }, segment("all", `All ${count(items.length)}`), numbers),
    shown.length === 0 ? empty("None of these", "No decision has this verdict.") : table("Decisions, newest first", columns, shown, { rowAttributes: (item) => ({ class: item.undone ? "is-undone" : null }) }),
    next && el("a.button", { href: href("decisions", { before: next }) }, "Older"),
  );
}

function factCell(item) {
  return [factText(item, { links: true }), item.note && el("div.small.soft", {}, item.note)];
}

/** What the model had said when it was decided. */
function thenCell(item) {
  const said = item.rank && `rank ${count(item.rank)}, ${percent(item.probability ?? 0)}`;
  return [el("span.small.number", {}, said || "–"), item.fact_id && el("div.small.soft", {}, "added to the graph")];
}

function actions(item, canWrite) {
  const { head, relation, tail } = item;
  const why = el("a.button.button-small", { href: href("why", { head, relation, tail }), "aria-label": `Why ${head} ${relation} ${tail}` }, "Why");
  return el("span.row", {}, why, canWrite && !item.undone && takeBack(item));
}

function takeBack(item) {
  const click = async () => {
    try {
      await api.undoDecision(item.id);
      toast(`Taken back${item.fact_id ? "; the fact it added too" : ""}.`);
      again();
    } catch (error) {
      toast(error.message);
    }
  };
  return el("button.button.button-small", { type: "button", "aria-label": `Take back the decision on ${item.head} ${item.relation} ${item.tail}`, on: { click } }, icon("undo"), "Take back");
}
