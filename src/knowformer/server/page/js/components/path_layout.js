// Where the entities of paths stand: the question's on one side, the answer on the other.
import { boxOf, wrapped } from "./graph_style.js";
import { entityName } from "../names.js";

/**
 * Returns places by entity: x goes from the question, 0, to the answer, 1; rows are counted from the
 * middle. An entity of several paths stands in the middle of where they want it. The middle row is
 * kept free for facts that lead straight to the answer, if there are any.
 */
export function layeredPlaces(paths, from, answer) {
  const wanted = new Map();
  paths.forEach((path) => {
    path.steps.slice(0, -1).forEach((step, place) => {
      if (step.end === from || step.end === answer) return;
      const depths = wanted.get(step.end) ?? [];
      wanted.set(step.end, [...depths, (place + 1) / path.steps.length]);
    });
  });
  const columns = new Map();
  for (const [name, depths] of wanted) {
    const depth = Math.round((depths.reduce((sum, each) => sum + each, 0) / depths.length) * 6) / 6;
    columns.set(depth, [...(columns.get(depth) ?? []), name]);
  }
  const isStraight = paths.some((path) => path.steps.length === 1);
  const places = new Map([[from, { x: 0, row: 0 }], [answer, { x: 1, row: 0 }]]);
  for (const [x, names] of columns) {
    const above = Math.floor(names.length / 2);
    names.forEach((name, place) => {
      const row = isStraight ? place - above + (place >= above ? 1 : 0) : place - (names.length - 1) / 2;
      places.set(name, { x, row });
    });
  }
  return places;
}

const ROW = 80; // between entities that are equally far
const LENGTH = 760; // from the question to the answer, at least
const GAP = 84; // between the boxes of neighbouring columns: room for a relation's name

/** How far an arc must be bent to pass over all rows: it rises half as far. */
export function bendOver(places) {
  return (2 * Math.max(...[...places.values()].map(({ row }) => -row)) + 1) * ROW + 50;
}

/** Places in the picture, from left to right; columns keep so far apart that no boxes meet. */
export function sidewards(places) {
  const widths = new Map();
  for (const [name, { x }] of places) widths.set(x, Math.max(widths.get(x) ?? 0, boxOf(wrapped(entityName(name))).width));
  const depths = [...widths.keys()].sort((a, b) => a - b);
  const at = new Map([[depths[0], 0]]);
  depths.slice(1).forEach((depth, place) => {
    const before = depths[place];
    const apart = (widths.get(before) + widths.get(depth)) / 2 + GAP;
    at.set(depth, at.get(before) + Math.max(apart, LENGTH * (depth - before)));
  });
  return new Map([...places].map(([name, { x, row }]) => [name, { x: at.get(x), y: row * ROW }]));
}

/** Places in a narrow picture, from top to bottom; what lies between goes left and right in turn. */
export function downwards(places, from, answer) {
  const between = [...places].filter(([name]) => name !== from && name !== answer).sort(([, a], [, b]) => a.x - b.x);
  const put = between.map(([name], place) => [name, { x: place % 2 ? 104 : -104, y: 100 + place * 72 }]);
  return new Map([[from, { x: 0, y: 0 }], ...put, [answer, { x: 0, y: 130 + between.length * 72 }]]);
}

/** Returns the facts of paths, each once, with the largest loss of a path that uses it. */
export function pathFacts(paths) {
  const facts = new Map();
  for (const path of paths) {
    for (const step of path.steps) {
      const [head, tail] = step.backwards ? [step.end, step.start] : [step.start, step.end];
      const key = factKey({ head, relation: step.relation, tail });
      const lost = Math.max(path.loss.truth_log_odds, facts.get(key)?.lost ?? 0);
      facts.set(key, { key, head, relation: step.relation, tail, lost });
    }
  }
  return [...facts.values()];
}

/** One text for a fact: its names, with a tab between, which no name has. */
export const factKey = ({ head, relation, tail }) => [head, relation, tail].join("\t");

/** The fact of such a text. */
export function factOf(key) {
  const [head, relation, tail] = key.split("\t");
  return { head, relation, tail };
}
