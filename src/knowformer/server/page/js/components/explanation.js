// An explanation in words: where the answer stands, its paths, and what it loses without them.
import { count, counted, oddsInWords, percent, rank } from "../format.js";
import { el } from "../dom.js";
import { entityLink, pathText, probabilityBar, thinBar } from "./pieces.js";
import { factKey } from "./path_layout.js";

const NO_CHANGE = 0.05;

const VERDICT_BADGES = {
  "carry the answer": "badge-good",
  contribute: "badge-accent",
  "hardly matter": "",
  "are no better than random": "badge-warn",
};

/** Rank, probability and what was hidden to find reasons. */
export function standing(explanation) {
  const here = explanation.standing;
  const other =
    here.rank !== here.rank_among_all &&
    el("p.small.soft", {}, `Rank ${rank(here.rank)} once other known facts are left out.`);
  return el(
    "div.stack.stack-tight",
    {},
    el(
      "div.standing",
      {},
      el("div", {}, el("span.figure.number", {}, `${rank(here.rank_among_all)}`), el("span.soft", {}, ` of ${count(explanation.num_candidates)} candidates`)),
      el("div.standing-bar", {}, probabilityBar(here.probability)),
    ),
    other,
    explanation.probability_kind === "model" && el("p.small.soft", {}, "The probability is the model's own, not calibrated."),
    explanation.fact_hidden && el("p.small.soft", {}, "The fact is in the graph; it was hidden from the model, to find other reasons."),
  );
}

/** The paths as a list: what the answer loses without each, and the path itself. */
export function pathList(explanation, { onHover = () => {} } = {}) {
  if (explanation.paths.length === 0) return el("p.soft", {}, explanation.no_paths ?? "No path speaks for this answer.");
  const most = Math.max(0.1, ...explanation.paths.map((path) => path.loss.truth_log_odds));
  const item = (path) => {
    const lost = path.loss.truth_log_odds;
    const keys = new Set(path.steps.map(keyOfStep));
    const over = () => onHover(keys);
    const out = () => onHover(null);
    return el(
      "li.path",
      { tabindex: 0, on: { mouseenter: over, mouseleave: out, focus: over, blur: out } },
      pathText(path),
      el("span.path-loss", {}, thinBar(lost > NO_CHANGE ? lost / most : 0), el("span.small.soft", {}, `Without it, ${oddsInWords(lost)}.`)),
    );
  };
  return el("ol.paths", { "aria-label": "Paths that speak for the answer" }, explanation.paths.map(item));
}

function keyOfStep(step) {
  const [head, tail] = step.backwards ? [step.end, step.start] : [step.start, step.end];
  return factKey({ head, relation: step.relation, tail });
}

/** What is lost without all of the evidence, beside random evidence, in plain words. */
export function losses(explanation) {
  const checks = explanation.faithfulness.map((check) => lossOf(explanation, check));
  const attention = explanation.without_attention && attentionOf(explanation);
  return el("div.stack", {}, checks, attention);
}

function lossOf(explanation, check) {
  const here = explanation.standing;
  const pieces = check.evidence === "paths" ? counted(check.size, "fact") : counted(check.size, "entity", "entities");
  const random = check.random.reduce((sum, each) => sum + each.truth_log_odds, 0) / Math.max(1, check.random.length);
  const after = Math.max(0, here.probability - check.loss.probability);
  const fall = here.rank_among_all + check.loss.rank_among_all;
  const title = check.evidence === "paths" ? "Its paths" : "Its prototypes";
  const others = check.evidence === "paths" ? `${pieces} nearby` : `${pieces} as far away`;
  return el(
    "div.loss",
    {},
    el("h3", {}, `${title} `, el(`span.badge.${VERDICT_BADGES[check.verdict] || "badge-plain"}`, {}, check.verdict)),
    el(
      "p",
      {},
      `Without ${check.evidence === "paths" ? `the ${pieces} of these paths` : `attention to these ${pieces}`}, its `,
      el("strong", {}, oddsInWords(check.loss.truth_log_odds)),
      `: ${percent(here.probability)} becomes ${percent(after)}, rank ${rank(here.rank_among_all)} becomes ${rank(fall)}.`,
    ),
    el("p.small.soft", {}, `For comparison: without ${others}, drawn at random ${count(check.random.length)} times, ${oddsInWords(random)}.`),
  );
}

function attentionOf(explanation) {
  const lost = explanation.without_attention;
  return el("p.small.soft", {}, `Without any attention between entities, ${oddsInWords(lost.truth_log_odds)}.`);
}

/** Entities that the answer gains by attending to. */
export function prototypes(explanation) {
  if (explanation.prototypes.length === 0) return el("p.soft", {}, explanation.no_prototypes ?? "This answer has none.");
  const check = explanation.faithfulness.find((each) => each.evidence === "prototypes");
  const matter = check && (check.verdict === "carry the answer" || check.verdict === "contribute");
  const all = explanation.prototypes.reduce((sum, each) => sum + each.influence, 0);
  const item = (each) =>
    el(
      "li.prototype",
      {},
      entityLink(each.entity),
      thinBar(each.influence / explanation.prototypes[0].influence),
      el("span.small.soft.number", {}, `${Math.round((100 * each.influence) / all)} % of their effect · attended ${each.attention.toFixed(1)}×`),
    );
  const list = el("ul.prototypes", {}, explanation.prototypes.map(item));
  if (matter) return list;
  return el(
    "div.stack.stack-tight",
    {},
    el("p.soft", {}, `Prototypes ${check?.verdict ?? "hardly matter"} here: this answer does not rest on them.`),
    el("details", {}, el("summary", {}, "Show them all the same"), list),
  );
}
