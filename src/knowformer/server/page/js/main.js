// Starts the workbench: the views, the list of them, and the state of the graph beside it.
import { onSnapshot } from "./api.js";
import { count, counted } from "./format.js";
import { el, fill } from "./dom.js";
import { forgetGraph, theGraph } from "./session.js";
import { href, start } from "./router.js";
import { icon } from "./icons.js";
import { view as ask } from "./views/ask.js";
import { view as batch } from "./views/batch.js";
import { view as compare } from "./views/compare.js";
import { view as decisions } from "./views/decisions.js";
import { view as facts } from "./views/facts.js";
import { view as graph } from "./views/graph.js";
import { view as model } from "./views/model.js";
import { view as whatIf } from "./views/what_if.js";
import { view as why } from "./views/why.js";

const ROUTES = { ask, why, compare, "what-if": whatIf, graph, facts, decisions, batch, model };

const SECTIONS = [
  ["ask", "Ask"],
  ["graph", "Graph"],
  ["facts", "Facts"],
  ["decisions", "Decisions"],
  ["batch", "Batch"],
  ["model", "Model"],
];

function showSections(current) {
  const link = ([name, text]) =>
    el("li", {}, el("a", { href: href(name), "aria-current": name === current ? "page" : null }, icon(name), text));
  fill(document.getElementById("navigation"), el("ul", {}, SECTIONS.map(link)));
}

async function showGraph() {
  const place = document.getElementById("graph-status");
  try {
    const { name, entities, facts: facts_, added, removed, snapshot } = await theGraph();
    const changes = [added && `${count(added)} added`, removed && `${count(removed)} removed`].filter(Boolean).join(", ");
    fill(
      place,
      el("strong", {}, name),
      el("div.soft.number", {}, counted(facts_, "fact")),
      el("div.soft.number", {}, counted(entities, "entity", "entities")),
      changes && el("div.soft.number", {}, changes),
      el("div.soft.number", { title: "Grows with every change; answers name the snapshot they were given on." }, `snapshot ${snapshot}`),
    );
  } catch {
    fill(place);
  }
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});

onSnapshot(() => {
  forgetGraph();
  showGraph();
});

start(ROUTES, document.getElementById("main"), (section) => {
  showSections(section);
  showGraph();
});
