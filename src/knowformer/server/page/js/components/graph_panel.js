// A graph one can explore: hover, drag, zoom, and bring in the neighbours of an entity.
import { api } from "../api.js";
import { boxOf, graphStyle, wrapped } from "./graph_style.js";
import { el, fill, freshId } from "../dom.js";
import { entityName, learnFacts, relationName } from "../names.js";
import { announce } from "../live.js";
import { counted } from "../format.js";
import { factKey } from "./path_layout.js";
import { href } from "../router.js";
import { icon } from "../icons.js";

const MORE = 10; // neighbours that are brought in at once
const CLOSEST = 1.15; // zoom at which a small graph is still drawn
const MARGIN = 28;
const LOWEST = 260; // height of a picture that needs little

/** A drawn graph with its tools. Everything it shows is in a text beside it, too. */
export class GraphPanel {
  /**
   * @param {object} options
   * @param {string} options.label what the picture shows, for a screen reader
   * @param {{name: string, role?: string}[]} options.nodes
   * @param {object[]} options.facts with head, relation, tail, and perhaps lost, role and others:
   *   how many more facts an edge stands for
   * @param {(width: number) => Map<string, {x: number, y: number}>} options.places
   * @param {(width: number) => number} [options.bend] how far the question's edge keeps from the middle
   */
  constructor({ label, nodes, facts, places, bend = () => 0 }) {
    this.nodes = nodes;
    this.facts = facts;
    this.places = places;
    this.bend = bend;
    this.canvas = el("div.graph-canvas", { role: "img", "aria-label": label });
    this.card = el("div.graph-card", {});
    this.chooser = el("select", { id: freshId("entity"), on: { change: () => this.choose(this.chooser.value) } });
    this.element = el("figure.graph", {}, this.canvas, this.tools(), this.card);
    this.observer = new ResizeObserver(() => this.sized());
    this.observer.observe(this.canvas);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", () => this.cy?.style(graphStyle()));
  }

  tools() {
    const button = (label, name, click) =>
      el("button.button.button-icon.button-small", { type: "button", "aria-label": label, title: label, on: { click } }, icon(name));
    return el(
      "div.graph-tools",
      { role: "group", "aria-label": "Picture" },
      button("Zoom in", "plus", () => this.zoom(1.25)),
      button("Zoom out", "minus", () => this.zoom(0.8)),
      button("Show all", "fit", () => this.fit()),
    );
  }

  async sized() {
    if (!this.canvas.isConnected || this.canvas.clientWidth === 0) return;
    if (this.cy) {
      this.cy.resize();
      this.fit();
    } else if (!this.isStarting) {
      this.isStarting = true;
      await this.start();
    }
  }

  async start() {
    const { default: cytoscape } = await import("../../vendor/cytoscape/cytoscape.esm.min.js");
    if (!this.canvas.isConnected) return;
    const places = this.places(this.canvas.clientWidth);
    this.cy = cytoscape({
      container: this.canvas,
      style: graphStyle(),
      elements: [...this.nodes.map((node) => this.node(node, places.get(node.name))), ...this.facts.map((fact) => this.edge(fact))],
      layout: { name: "preset" },
      userZoomingEnabled: false, // the wheel scrolls the page; with Ctrl it zooms, below
      boxSelectionEnabled: false,
      autounselectify: true,
    });
    this.listen();
    this.fit();
    this.shrink();
    this.listNodes();
    this.canvas.dataset.ready = "yes";
  }

  node({ name, role = "" }, position) {
    const label = wrapped(entityName(name));
    return { group: "nodes", data: { id: name, label, ...boxOf(label) }, position: { ...position }, classes: role };
  }

  edge(fact) {
    const width = 1.4 + Math.min(3.4, 2.2 * Math.sqrt(Math.max(0, fact.lost ?? 0)));
    const id = `${fact.role ?? "fact"} ${factKey(fact)}`;
    const label = relationName(fact.relation) + (fact.others ? ` +${fact.others}` : "");
    const data = { id, key: factKey(fact), source: fact.head, target: fact.tail, label, width, bend: this.bend(this.canvas.clientWidth) };
    return { group: "edges", data, classes: fact.role ?? "" };
  }

  listen() {
    const { cy } = this;
    cy.on("tap", "node", (event) => this.choose(event.target.id()));
    cy.on("mouseover", "node, edge", (event) => {
      event.target.closedNeighborhood().addClass("hover");
      this.canvas.classList.add("is-over");
    });
    cy.on("mouseout", "node, edge", () => {
      cy.elements().removeClass("hover");
      this.canvas.classList.remove("is-over");
    });
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.1 : 0.9);
      },
      { passive: false },
    );
  }

  /** Makes the facts of a path stand out; null ends it. */
  highlight(keys) {
    if (!this.cy) return;
    this.cy.elements().removeClass("dim strong");
    if (!keys) return;
    const chosen = this.cy.edges().filter((edge) => keys.has(edge.data("key")) && !edge.hasClass("question"));
    chosen.addClass("strong");
    this.cy.elements().not(chosen.union(chosen.connectedNodes())).addClass("dim");
  }

  zoom(factor) {
    const level = this.cy.zoom() * factor;
    this.cy.zoom({ level, renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 } });
  }

  fit() {
    this.cy.fit(undefined, MARGIN);
    if (this.cy.zoom() > CLOSEST) {
      this.cy.zoom(CLOSEST);
      this.cy.center();
    }
  }

  /** Gives back the height that a flat graph leaves empty. */
  shrink() {
    const height = Math.max(LOWEST, this.cy.elements().renderedBoundingBox().h + 2 * MARGIN);
    if (height > this.canvas.clientHeight) return;
    this.canvas.style.height = `${height}px`;
    this.cy.resize();
    this.fit();
  }

  listNodes() {
    const names = this.cy.nodes().map((node) => node.id());
    const options = names.map((name) => el("option", { value: name }, entityName(name)));
    fill(this.chooser, el("option", { value: "" }, "choose one"), options);
    this.drawCard();
  }

  /** Says what can be done with an entity that was clicked, or chosen from the list. */
  choose(name) {
    this.chosen = name || null;
    this.cy.nodes().removeClass("hover");
    if (name) this.cy.getElementById(name).addClass("hover");
    this.chooser.value = name;
    this.drawCard();
  }

  drawCard() {
    const name = this.chosen;
    const actions = name && [
      el("button.button.button-small", { type: "button", on: { click: () => this.expand(name) } }, icon("plus"), "Neighbours"),
      el("a.button.button-small", { href: href("graph", { name }) }, "Look around"),
      el("a.button.button-small", { href: href("ask", { head: name }) }, "Ask about it"),
    ];
    const label = el("label.small.soft", { for: this.chooser.id }, "Entity");
    const hasFocus = this.card.contains(document.activeElement) && document.activeElement === this.chooser;
    fill(this.card, label, this.chooser, actions);
    if (hasFocus) this.chooser.focus();
  }

  /** Brings in facts of an entity that are not drawn yet. */
  async expand(name) {
    try {
      const around = await api.entity({ name, limit: 40 });
      learnFacts(around.items);
      this.join(name, around.items);
    } catch (error) {
      announce(error.message);
    }
  }

  join(name, facts) {
    const { cy } = this;
    const drawn = new Set(cy.edges().map((edge) => edge.data("key")));
    const unseen = facts.filter((fact) => !drawn.has(factKey(fact)) && fact.head !== fact.tail);
    const other = (fact) => (fact.head === name ? fact.tail : fact.head);
    const isThere = (entity) => cy.getElementById(entity).nonempty();
    const names = [...new Set(unseen.map(other).filter((entity) => !isThere(entity)))].slice(0, MORE);
    const at = cy.getElementById(name).position();
    const box = cy.nodes().boundingBox();
    const outwards = Math.atan2(at.y - (box.y1 + box.y2) / 2, at.x - (box.x1 + box.x2) / 2);
    names.forEach((entity, place) => {
      const angle = outwards + (names.length < 2 ? 0 : (place / (names.length - 1) - 0.5) * Math.PI * 1.1);
      const radius = 190 + 70 * (place % 2);
      const position = { x: at.x + radius * Math.cos(angle) * 1.25, y: at.y + radius * Math.sin(angle) };
      cy.add(this.node({ name: entity, role: "more" }, position));
    });
    const joined = unseen.filter((fact) => isThere(other(fact)));
    for (const fact of joined) {
      if (cy.getElementById(`more ${factKey(fact)}`).empty()) cy.add(this.edge({ ...fact, role: "more" }));
    }
    this.canvas.style.height = ""; // all of it is needed now
    this.cy.resize();
    this.fit();
    this.listNodes();
    announce(`${counted(names.length, "neighbour")} of ${entityName(name)} added.`);
  }
}
