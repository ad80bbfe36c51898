// States that are no content: loading, nothing there, something wrong.
import { forgetGraph } from "../session.js";
import { again } from "../router.js";
import { announce } from "../live.js";
import { el, fill, freshId } from "../dom.js";
import { icon } from "../icons.js";
import { useToken } from "../api.js";

/** Grey lines in place of what is on its way. */
export function loading(sentence, lines = 4) {
  const bones = Array.from({ length: lines }, () => el("span.bone"));
  return el("div.loading", { role: "status" }, el("span.visually-hidden", {}, sentence), bones);
}

/** Nothing is there: says so, and what to do. */
export function empty(title, sentence, ...more) {
  return el("div.empty", {}, el("h3", {}, title), el("p.soft", {}, sentence), more);
}

/** What is wrong, in the server's own sentence, with suggestions to click. */
export function wrong(problem, { onSuggestion = null } = {}) {
  if (problem.status === 401) return tokenForm(problem);
  const suggested = onSuggestion
    ? problem.suggestions.map((name) =>
        el("button.button.button-small", { type: "button", on: { click: () => onSuggestion(name, problem) } }, name),
      )
    : [];
  const retry = el("button.button.button-small", { type: "button", on: { click: again } }, "Try again");
  return el(
    "div.notice.notice-bad",
    { role: "alert" },
    icon("warning"),
    el(
      "div.stack.stack-tight",
      {},
      el("p", {}, problem.message),
      suggested.length > 0 && el("div.row", {}, el("span.small", {}, "Use instead:"), suggested),
      mayPass(problem) && el("div", {}, retry),
    ),
  );
}

const mayPass = (problem) => problem.status === 0 || problem.status >= 429;

/** A remark. */
export function note(...content) {
  return el("div.notice", {}, icon("info"), el("div", {}, content));
}

function tokenForm(problem) {
  const id = freshId("token");
  const input = el("input.input", { id, type: "password", autocomplete: "current-password", required: true });
  const submit = (event) => {
    event.preventDefault();
    useToken(input.value.trim());
    forgetGraph();
    again();
  };
  return el(
    "form.card.stack.token-form",
    { on: { submit } },
    el("h2", {}, "A token is needed"),
    el("p.soft", {}, problem.message),
    el("div.field", {}, el("label.label", { for: id }, "Token"), input),
    el("p.hint", {}, "It is kept in this tab until you close it."),
    el("div", {}, el("button.button.button-main", {}, "Continue")),
  );
}

/**
 * Fills a place with what a promise brings: a loading state first, then content or what is wrong.
 * Requests that were cancelled, because the reader has moved on, leave the place alone.
 */
export async function fillWhenReady(place, promise, draw, { sentence = "Loading", lines = 4, onSuggestion } = {}) {
  fill(place, loading(sentence, lines));
  place.setAttribute("aria-busy", "true");
  try {
    const content = await promise;
    fill(place, await draw(content));
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!("status" in error)) console.error(error);
    fill(place, wrong({ suggestions: [], ...error, message: error.message }, { onSuggestion }));
    announce(error.message);
  } finally {
    place.removeAttribute("aria-busy");
  }
}
