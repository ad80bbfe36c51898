// The dialog that removes a fact from the graph, with a reason.
import { api } from "../api.js";
import { author, rememberAuthor } from "../session.js";
import { el, fill } from "../dom.js";
import { factText, labelled } from "./pieces.js";
import { href } from "../router.js";
import { toast } from "../live.js";
import { wrong } from "./notice.js";

/** Asks why, removes the fact, and calls back. */
export function removeFact(fact, done) {
  const why = el("input.input", { id: "remove-why", maxlength: 2000 });
  const name = el("input.input", { id: "remove-author", value: author(), autocomplete: "name", maxlength: 200 });
  const errors = el("div");
  const submit = async (event) => {
    event.preventDefault();
    rememberAuthor(name.value.trim());
    const { head, relation, tail } = fact;
    try {
      await api.addFact({ action: "remove", head, relation, tail, why: why.value.trim() || undefined, author: name.value.trim() || undefined });
      dialog.remove();
      toast("Removed.", el("a", { href: href("facts") }, "Undo it there"));
      done();
    } catch (error) {
      fill(errors, wrong(error));
    }
  };
  const dialog = el(
    "dialog",
    { "aria-labelledby": "remove-title", on: { close: () => dialog.remove() } },
    el(
      "form.stack",
      { method: "dialog", on: { submit } },
      el("h2", { id: "remove-title" }, "Remove this fact?"),
      el("p", {}, factText(fact)),
      el("p.soft.small", {}, "The next answer no longer sees it. It can be undone."),
      labelled("Why", why),
      labelled("Your name", name),
      errors,
      el("div.row.row-ends", {}, el("button.button", { type: "button", on: { click: () => dialog.close() } }, "Cancel"), el("button.button.button-main", {}, "Remove it")),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}
