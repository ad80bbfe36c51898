// Model: what it was trained on, how well it does, and what to compare that with.
import { api } from "../api.js";
import { count, counted } from "../format.js";
import { el, fill } from "../dom.js";
import { fillWhenReady } from "../components/notice.js";
import { href } from "../router.js";
import { relationName } from "../names.js";
import { table } from "../components/table.js";
import { viewHead } from "../components/pieces.js";

const MEASURES = ["mrr", "hits@1", "hits@3", "hits@10"];
const BASELINES = { rules: "Two-hop rules", popularity: "Popularity" };

export const view = {
  title: () => "Model",

  render(outlet, params, { signal }) {
    const body = el("div.stack.stack-loose");
    fill(outlet, viewHead("Model", "The card of the model that answers here."), body);
    fillWhenReady(body, api.model(signal), draw, { lines: 8 });
  },
};

function draw(model) {
  const { versions = {}, hardware = {}, ...training } = model.training ?? {};
  return el(
    "div.stack.stack-loose.appear",
    {},
    summary(model),
    measures(model),
    pairs("Training", { ...training, commit: training.commit?.slice(0, 10) }),
    calibration(model.calibration),
    pairs("Made with", { ...versions, ...hardware }),
    pairs("Settings", model.settings, { isFolded: true }),
    relations(model.relations ?? []),
  );
}

/** What a probability is the probability of, and what it was fitted on. */
function calibration(content) {
  if (!content) return el("section.stack", {}, el("h2", {}, "Probabilities"), el("p.soft", {}, "They are the model's own, not calibrated."));
  const { event, fitted_on: fitted = {} } = content;
  const facts = Object.fromEntries(Object.entries(fitted).filter(([, value]) => typeof value === "number"));
  return el("section.stack", {}, el("h2", {}, "Probabilities"), event && el("p.measure", {}, `A probability is that of this: ${event}`), pairList(flat(facts)));
}

/** The measures there are: on test facts if they were evaluated, else on validation facts. */
function measured(model) {
  const { test, best_validation: valid = {} } = model.metrics ?? {};
  if (test) return { facts: "test facts", own: test.realistic, baselines: test.baselines ?? {}, ece: test.calibration?.expected_calibration_error?.after };
  const own = Object.fromEntries(MEASURES.map((measure) => [measure, valid[`valid_${measure}`]]));
  return { facts: "validation facts", own, baselines: model.baselines ?? {} };
}

function summary(model) {
  const { facts, own, ece } = measured(model);
  const figures = [
    ["run", model.run],
    ["data set", model.dataset],
    [`MRR on ${facts}`, number(own.mrr)],
    ["first answer right", share(own["hits@1"])],
    ["right among ten", share(own["hits@10"])],
    ["calibration error", number(ece)],
  ].filter(([, value]) => value !== null && value !== undefined);
  const isName = (what) => what === "run" || what === "data set";
  const figure = ([what, value]) => el("div.card", {}, el("dt.soft.small", {}, what), el(`dd.figure.${isName(what) ? "figure-name" : "number"}`, {}, value));
  return el("dl.figures", {}, figures.map(figure));
}

const number = (value) => (typeof value === "number" ? value.toFixed(3) : null);
const share = (value) => (typeof value === "number" ? `${(100 * value).toFixed(0)} %` : null);

/** The model beside what popularity and simple rules reach on the same facts. */
function measures(model) {
  const { facts, own, baselines } = measured(model);
  const others = Object.entries(baselines);
  const named = ([name, values]) => ({ name: BASELINES[name] ?? name, ...values.realistic });
  const rows = [{ name: "This model", ...own, isOwn: true }, ...others.map(named)];
  const shown = MEASURES.filter((measure) => typeof own[measure] === "number");
  const columns = [
    { title: "Who", kind: "main", cell: (row) => (row.isOwn ? el("strong", {}, row.name) : row.name) },
    ...shown.map((measure) => ({ title: measure.toUpperCase().replace("HITS", "Hits"), kind: "number", cell: (row) => number(row[measure]) ?? "" })),
  ];
  const better = others.filter(([, values]) => values.is_beaten === false).map(([name]) => (BASELINES[name] ?? name).toLowerCase());
  const verdict = better.length > 0 ? `It is not clearly better than ${better.join(" or ")}: read its answers with care, or train it longer.` : "It is clearly better than the baselines.";
  return el(
    "section.stack",
    {},
    el("h2", {}, "How well it does"),
    el("p.soft", {}, `On ${facts}, each ranked against all entities, known facts left out. ${others.length > 0 ? verdict : ""}`),
    table("Measures", columns, rows),
  );
}

function pairs(title, content, { isFolded = false } = {}) {
  const rows = content ? flat(content) : [];
  if (rows.length === 0) return null;
  const list = pairList(rows);
  const body = isFolded ? el("details", {}, el("summary", {}, `Show ${count(rows.length)} settings`), list) : list;
  return el("section.stack", {}, el("h2", {}, title), body);
}

const pairList = (rows) => el("dl.pairs", {}, rows.map(([name, value]) => el("div", {}, el("dt.soft", {}, name), el("dd.number", {}, value))));

/** Nested content as rows of a dotted name and a value. */
function flat(content, prefix = "") {
  return Object.entries(content).flatMap(([name, value]) => {
    const words = `${prefix}${name}`.replaceAll("_", " ");
    if (value === null || value === undefined) return [];
    if (Array.isArray(value)) return value.length > 0 && typeof value[0] !== "object" ? [[words, value.join(", ")]] : [];
    if (typeof value === "object") return flat(value, `${prefix}${name}.`);
    if (typeof value === "number") return [[words, Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)))]];
    return [[words, String(value)]];
  });
}

function relations(names) {
  const item = (name) => el("li", {}, el("a.chip", { href: href("ask", { relation: name }), title: name }, relationName(name)));
  return el("section.stack", {}, el("h2", {}, counted(names.length, "relation")), el("ul.chips", {}, names.map(item)));
}
