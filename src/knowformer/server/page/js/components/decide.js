// The dialog in which one accepts or rejects a fact that the model proposes.
import { api } from "../api.js";
import { author, mayWrite, rememberAuthor } from "../session.js";
import { el, fill } from "../dom.js";
import { factText, labelled, VERDICTS } from "./pieces.js";
import { href } from "../router.js";
import { icon } from "../icons.js";
import { toast } from "../live.js";
import { wrong } from "./notice.js";

const CHOICES = [
  ["accept", "Accept", "decisions"],
  ["reject", "Reject", "cross"],
  ["unsure", "Unsure", "unsure"],
];

/**
 * Asks for a verdict on a fact and stores it.
 * @returns {Promise<object|null>} the decision, or null if the reader has changed their mind
 */
export async function decide(fact, { rank = null, probability = null, isKnown = false } = {}) {
  const canWrite = await mayWrite();
  return new Promise((resolve) => {
    const dialog = el("dialog", { "aria-labelledby": "decide-title", on: { close: () => finish(null) } });
    const finish = (decision) => {
      dialog.remove();
      resolve(decision);
    };
    fill(dialog, canWrite ? form(dialog, fact, { rank, probability, isKnown }, finish) : readOnly(dialog));
    document.body.append(dialog);
    dialog.showModal();
  });
}

function readOnly(dialog) {
  return el(
    "div.stack",
    {},
    el("h2", { id: "decide-title" }, "You may read, not decide"),
    el("p.soft", {}, "Your token has the role 'read'. Ask whoever runs this server for one that may write."),
    el("div", {}, el("button.button", { type: "button", on: { click: () => dialog.close() } }, "Close")),
  );
}

function form(dialog, fact, { rank, probability, isKnown }, finish) {
  const errors = el("div");
  const noteField = el("textarea", { id: "decide-note", rows: 3, maxlength: 2000 });
  const name = el("input.input", { id: "decide-author", value: author(), autocomplete: "name", maxlength: 200 });
  const addFact = el("input", { type: "checkbox", id: "decide-add" });
  const addLine = el("label.check", { hidden: isKnown }, addFact, "Add it to the graph as a fact, for the next answers");
  const choices = CHOICES.map(([value, text, sign]) =>
    el("label", {}, el("input", { type: "radio", name: "verdict", value, required: true, checked: value === "accept" }), icon(sign), text),
  );
  const submit = async (event) => {
    event.preventDefault();
    const verdict = new FormData(event.target).get("verdict");
    rememberAuthor(name.value.trim());
    try {
      const stored = await api.decide({
        head: fact.head,
        relation: fact.relation,
        tail: fact.tail,
        verdict,
        note: noteField.value.trim() || undefined,
        author: name.value.trim() || undefined,
        rank: rank ?? undefined,
        probability: probability ?? undefined,
        add_fact: verdict === "accept" && addFact.checked && !isKnown,
      });
      finish(stored);
      toast(`${VERDICTS[verdict]}.`, el("a", { href: href("decisions") }, "All decisions"));
    } catch (error) {
      fill(errors, wrong(error));
    }
  };
  const change = (event) => {
    if (event.target.name === "verdict") addLine.hidden = isKnown || event.target.value !== "accept";
  };
  return el(
    "form.stack",
    { method: "dialog", on: { submit, change } },
    el("h2", { id: "decide-title" }, "Is this fact right?"),
    el("p", {}, factText(fact)),
    el("fieldset", {}, el("legend.visually-hidden", {}, "Verdict"), el("div.choices", {}, choices)),
    labelled("Note", noteField, "Why, or where it is written; optional."),
    labelled("Your name", name),
    addLine,
    errors,
    el(
      "div.row.row-ends",
      {},
      el("button.button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"),
      el("button.button.button-main", {}, "Save the decision"),
    ),
  );
}
