// Graph: counts and findings, and what is around an entity.
import { api } from "../api.js";
import { again, go, href } from "../router.js";
import { Combobox } from "../components/combobox.js";
import { copyLink } from "../components/copy_link.js";
import { count, counted } from "../format.js";
import { el, fill } from "../dom.js";
import { empty, fillWhenReady } from "../components/notice.js";
import { entityName, learn, learnFacts, relationName } from "../names.js";
import { factText, thinBar, viewHead } from "../components/pieces.js";
import { GraphPanel } from "../components/graph_panel.js";
import { icon } from "../icons.js";
import { mayWrite, theGraph } from "../session.js";
import { pager } from "../components/pager.js";
import { removeFact } from "../components/remove_fact.js";
import { table } from "../components/table.js";

const LIMIT = 20; // facts of an entity on a page
const LOOKED_AT = 200; // facts that the picture chooses from
const DRAWN = 12; // neighbours in the picture
const DRAWN_NARROW = 8; // on a phone
const RELATIONS = 12; // relations listed at first

export const view = {
  title: (params) => (params.get("name") ? entityName(params.get("name")) : "Graph"),

  render(outlet, params, { signal }) {
    const name = params.get("name");
    if (name) drawEntity(outlet, name, params, signal);
    else drawOverview(outlet, signal);
  },
};

function finder(value = "") {
  const field = new Combobox({
    label: "Look around an entity",
    kind: "entity",
    id: "graph-find",
    value,
    placeholder: "search by name",
  });
  const submit = (event) => {
    event.preventDefault();
    if (field.value) go("graph", { name: field.value });
  };
  return el("form.compare-with", { role: "search", on: { submit } }, field.element, el("button.button.button-main", {}, "Look around"));
}

function drawOverview(outlet, signal) {
  const counts = el("section", { "aria-label": "Counts" });
  const relations = el("section.stack", { "aria-label": "Relations" });
  const findings = el("section.stack", { "aria-label": "Findings" });
  fill(outlet, viewHead("Graph", "What the model knows, and what is odd in it."), finder(), counts, findings, relations);
  fillWhenReady(counts, theGraph(), drawCounts, { lines: 2 });
  fillWhenReady(findings, api.audit(signal), drawFindings, { sentence: "Checking the graph", lines: 5 });
  fillWhenReady(relations, api.relations("", 100, signal), ({ items }) => drawRelations(items), { lines: 6 });
}

function drawCounts(graph) {
  const figures = [
    [graph.entities, "entities"],
    [graph.relations, "relations"],
    [graph.facts, "facts"],
    [graph.added, "added"],
    [graph.removed, "removed"],
  ];
  const types = (graph.types ?? []).slice(0, 8).map((type) => el("li.chip", {}, type.name, el("span.soft.number", {}, ` ${count(type.entities)}`)));
  return el(
    "div.stack",
    {},
    el("dl.figures", {}, figures.map(([number, what]) => el("div.card", {}, el("dt.soft.small", {}, what), el("dd.figure.number", {}, count(number ?? 0))))),
    types.length > 0 && el("ul.chips", { "aria-label": "Types" }, types),
  );
}

const LEVELS = { warning: ["Warning", "badge-warn"], note: ["Note", "badge-accent"], good: ["Good", "badge-good"] };

function drawFindings({ findings }) {
  const item = ({ topic, level, found, why, advice }) => {
    const [word, badge] = LEVELS[level] ?? [level, "badge-plain"];
    return el(
      "li.finding",
      {},
      el("div.row", {}, el(`span.badge.${badge}`, {}, word), el("h3", {}, topic[0].toUpperCase() + topic.slice(1))),
      el("p", {}, found),
      (why || advice) && el("details", {}, el("summary", {}, "What it means, and what to do"), why && el("p.small", {}, why), advice && el("p.small", {}, advice)),
    );
  };
  return [el("h2", {}, "What could mislead"), findings.length > 0 ? el("ul.findings", {}, findings.map(item)) : el("p.soft", {}, "Nothing was found.")];
}

function drawRelations(items) {
  for (const item of items) learn("relation", item.name, item.label);
  const most = Math.max(1, ...items.map((item) => item.facts));
  const row = (item) =>
    el("li.relation", {}, el("a", { href: href("ask", { relation: item.name }), title: item.name }, relationName(item.name)), thinBar(item.facts / most), el("span.small.soft.number", {}, count(item.facts)));
  const sorted = [...items].sort((a, b) => b.facts - a.facts);
  const rest = sorted.slice(RELATIONS);
  return [
    el("h2", {}, "Relations"),
    el("ul.relations", {}, sorted.slice(0, RELATIONS).map(row)),
    rest.length > 0 && el("details", {}, el("summary", {}, `${counted(rest.length, "more relation")}`), el("ul.relations", {}, rest.map(row))),
  ];
}

function drawEntity(outlet, name, params, signal) {
  const body = el("div.stack.stack-loose");
  const ask = el("a.button.button-main", { href: href("ask", { head: name }) }, "Ask about it");
  const add = el("a.button", { href: href("facts", { head: name }) }, "Add a fact");
  fill(outlet, viewHead(entityName(name), "\u00a0", ask, add, copyLink()), body);
  const relation = params.get("relation") || undefined;
  const offset = Number(params.get("offset") ?? 0);
  const reads = Promise.all([
    api.entity({ name, relation, limit: LIMIT, offset }, signal),
    api.entity({ name, relation, limit: LOOKED_AT }, signal),
    mayWrite(),
  ]);
  fillWhenReady(
    body,
    reads,
    ([around, more, canWrite]) => {
      learn("entity", around.name, around.label);
      learnFacts(more.items);
      outlet.querySelector("h1").textContent = entityName(around.name);
      outlet.querySelector(".lead").textContent = about(around, relation);
      return drawAround(around, more.items, { relation, offset, canWrite });
    },
    { sentence: "Looking around", lines: 8, onSuggestion: (suggestion) => go("graph", { name: suggestion }) },
  );
}

function about(around, relation) {
  const parts = [around.label && around.label !== around.name && around.name, around.type, counted(around.total, "fact")];
  return `${parts.filter(Boolean).join(" · ")}${relation ? ` of ${relationName(relation)}` : ""}`;
}

function drawAround(around, drawn, { relation, offset, canWrite }) {
  const panel = drawn.length > 0 ? starPanel(around.name, drawn) : null;
  return el(
    "div.stack.stack-loose.appear",
    {},
    around.items.length === 0 && empty("No facts", relation ? "It has no fact of this relation." : "Nothing in the graph mentions it."),
    panel?.element,
    el("section.stack", {}, el("h2", {}, "Facts"), chips(around, relation), factTable(around, { relation, offset, canWrite })),
    finder(),
  );
}

function chips(around, chosen) {
  const totalOf = (entry) => (entry.as_head ?? 0) + (entry.as_tail ?? 0);
  const chip = (entry) => {
    const total = totalOf(entry);
    const isChosen = entry.relation === chosen;
    const params = { name: around.name, relation: isChosen ? undefined : entry.relation };
    const title = `${count(entry.as_head ?? 0)} as head, ${count(entry.as_tail ?? 0)} as tail`;
    return el("li", {}, el("a.chip", { href: href("graph", params), "aria-current": isChosen ? "true" : null, title }, relationName(entry.relation), el("span.soft.number", {}, ` ${count(total)}`)));
  };
  return el("ul.chips", { "aria-label": "By relation" }, [...around.relations].sort((a, b) => totalOf(b) - totalOf(a)).map(chip));
}

function factTable(around, { relation, offset, canWrite }) {
  if (around.items.length === 0) return null;
  const columns = [
    { title: "Fact", kind: "main", cell: (fact) => factText(fact, { links: true }) },
    { title: "From", cell: (fact) => (fact.source === "live" ? el("span.badge.badge-accent", {}, "added") : el("span.small.soft", {}, "graph")) },
    { title: "Actions", kind: "actions", hideTitle: true, cell: (fact) => el("span.row", {}, el("a.button.button-small", { href: href("why", { head: fact.head, relation: fact.relation, tail: fact.tail }), "aria-label": `Why ${fact.head} ${fact.relation} ${fact.tail}` }, "Why"), canWrite && removeButton(fact)) },
  ];
  const onPage = (page) => go("graph", { name: around.name, relation, offset: page * LIMIT || undefined });
  return [table(`Facts of ${entityName(around.name)}`, columns, around.items), pager({ page: Math.floor(offset / LIMIT), size: LIMIT, total: around.total, onPage })];
}

function removeButton(fact) {
  const label = `Remove ${fact.head} ${fact.relation} ${fact.tail}`;
  return el("button.button.button-small.button-icon", { type: "button", "aria-label": label, title: "Remove", on: { click: () => removeFact(fact, again) } }, icon("close"));
}

/** The entity in the middle; what points to it on its left, what it points to on its right. */
function starPanel(name, facts) {
  const other = (fact) => (fact.head === name ? fact.tail : fact.head);
  const chosen = inTurn(facts.filter((fact) => fact.head !== fact.tail), other).slice(0, innerWidth < 560 ? DRAWN_NARROW : DRAWN);
  const neighbours = chosen.map(other);
  const names = new Set([name, ...neighbours]);
  const drawn = bundled(facts.filter((fact) => names.has(fact.head) && names.has(fact.tail) && fact.head !== fact.tail));
  return new GraphPanel({
    label: `Graph of ${entityName(name)} and ${counted(neighbours.length, "neighbour")}; the table below has the facts.`,
    nodes: [...names].map((each) => ({ name: each, role: each === name ? "asked" : "" })),
    facts: drawn,
    places: (width) => new Map([[name, { x: 0, y: 0 }], ...sides(chosen, name).flatMap((side, place) => column(side.map(other), place === 0 ? -1 : 1, width))]),
  });
}

/** One edge for the facts from one entity to another: the first, and how many there are besides. */
function bundled(facts) {
  const bundles = new Map();
  for (const fact of facts) {
    const ends = `${fact.head}\t${fact.tail}`;
    const first = bundles.get(ends);
    bundles.set(ends, first ? { ...first, others: first.others + 1 } : { ...fact, others: 0 });
  }
  return [...bundles.values()];
}

/** Facts on the left and on the right; a side that would be much longer gives some away. */
function sides(facts, name) {
  const byRelation = (a, b) => a.relation.localeCompare(b.relation);
  const left = facts.filter((fact) => fact.tail === name).sort(byRelation);
  const right = facts.filter((fact) => fact.tail !== name).sort(byRelation);
  const [longer, shorter] = left.length > right.length ? [left, right] : [right, left];
  while (longer.length > shorter.length + 2) shorter.push(longer.pop());
  return [left, right];
}

/** The places of a column, bent a little around the middle. */
function column(names, side, width) {
  const [reach, step] = width < 560 ? [150, 84] : [340, 66];
  return names.map((each, place) => {
    const y = (place - (names.length - 1) / 2) * step;
    return [each, { x: side * (reach - 0.0006 * reach * Math.abs(y)), y }];
  });
}

/** Facts in turn from each relation, one for each neighbour, so that no relation fills the picture. */
function inTurn(facts, other) {
  const groups = new Map();
  for (const fact of facts) groups.set(fact.relation, [...(groups.get(fact.relation) ?? []), fact]);
  const longest = Math.max(0, ...[...groups.values()].map((group) => group.length));
  const turns = Array.from({ length: longest }, (_, turn) => [...groups.values()].map((group) => group[turn]).filter(Boolean)).flat();
  const seen = new Set();
  return turns.filter((fact) => !seen.has(other(fact)) && seen.add(other(fact)));
}
