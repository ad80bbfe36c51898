// Facts: add one, upload many, see what was changed, undo it.
import { api } from "../api.js";
import { author, mayWrite, rememberAuthor } from "../session.js";
import { again, href } from "../router.js";
import { Combobox } from "../components/combobox.js";
import { count, counted, moment } from "../format.js";
import { el, fill } from "../dom.js";
import { empty, fillWhenReady, note, wrong } from "../components/notice.js";
import { exportButtons } from "../components/export_buttons.js";
import { factText, labelled, viewHead } from "../components/pieces.js";
import { FileText } from "../components/file_text.js";
import { icon } from "../icons.js";
import { learnFacts } from "../names.js";
import { table } from "../components/table.js";
import { announce, toast } from "../live.js";

const LIMIT = 50;
const ROWS = 50; // rejected rows that are listed

export const view = {
  title: () => "Facts",

  render(outlet, params, { signal }) {
    const forms = el("div.two");
    const list = el("section.stack", { "aria-label": "Changes" });
    const lead = "What you add is seen by the next answer, without training again. Entities may be new; relations must be known to the model.";
    fill(outlet, viewHead("Facts", lead, exportButtons("facts", api.exportFacts)), forms, list);
    const change = { head: params.get("head") ?? "", relation: params.get("relation") ?? "", tail: params.get("tail") ?? "" };
    fillWhenReady(forms, mayWrite(), (canWrite) => (canWrite ? [addForm(change), uploadForm()] : note("Your token may read, not write.")), { lines: 3 });
    const reads = Promise.all([api.facts({ limit: LIMIT, before: params.get("before") }, signal), mayWrite()]);
    fillWhenReady(list, reads, ([page, canWrite]) => drawChanges(page, canWrite), { lines: 5 });
  },
};

function addForm({ head, relation, tail }) {
  const fields = {
    head: new Combobox({ label: "Head", kind: "entity", id: "fact-head", value: head, placeholder: "known or new" }),
    relation: new Combobox({ label: "Relation", kind: "relation", id: "fact-relation", value: relation }),
    tail: new Combobox({ label: "Tail", kind: "entity", id: "fact-tail", value: tail, placeholder: "known or new" }),
  };
  const why = el("input.input", { id: "fact-why", maxlength: 2000 });
  const source = el("input.input", { id: "fact-source", maxlength: 2000, placeholder: "a paper, a person" });
  const name = el("input.input", { id: "fact-author", value: author(), autocomplete: "name", maxlength: 200 });
  const errors = el("div");
  const submit = async (event) => {
    event.preventDefault();
    const fact = Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.value]));
    const missing = Object.values(fields).find((field) => !field.value);
    if (missing) {
      announce("A fact has all three.");
      return missing.input.focus();
    }
    rememberAuthor(name.value.trim());
    try {
      const more = { why: why.value.trim(), source: source.value.trim(), author: name.value.trim() };
      const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value));
      const stored = await api.addFact({ action: "add", ...fact, ...given });
      toast(stored.unchanged ? "The graph has this fact already." : "Added.", el("a", { href: href("graph", { name: fact.head }) }, "Look around"));
      return again();
    } catch (error) {
      const onSuggestion = (suggestion) => {
        const wrongOne = Object.entries(fields).find(([key, field]) => error.field === key || error.message.includes(`'${field.value}'`));
        if (wrongOne) wrongOne[1].value = suggestion;
        fill(errors);
      };
      return fill(errors, wrong(error, { onSuggestion }));
    }
  };
  return el(
    "form.card.stack",
    { "aria-label": "Add a fact", on: { submit } },
    el("h2", {}, "Add a fact"),
    Object.values(fields).map((field) => field.element),
    el("div.two-fields", {}, labelled("Why", why), labelled("Source", source)),
    labelled("Your name", name),
    errors,
    el("div", {}, el("button.button.button-main", {}, "Add the fact")),
  );
}

function uploadForm() {
  const rows = new FileText({
    label: "File",
    id: "upload",
    hint: "A fact a row: head, relation, tail. Rows at fault are listed and left out; the others are added.",
    example: "Aspirin\tTreats\tHeadache",
  });
  const outcome = el("div.stack");
  const run = async (dryRun) => {
    if (rows.body === null) return fill(outcome, note("Choose a file or paste rows first."));
    try {
      const result = await api.uploadFacts(rows.body, rows.type, dryRun, author() || undefined);
      const shown = uploadResult(result, dryRun);
      fill(outcome, shown);
      announce(shown.textContent);
      if (!dryRun && result.accepted > 0) {
        toast(`${counted(result.accepted, "fact")} added.`);
        if (result.rejected.length === 0) again();
      }
    } catch (error) {
      fill(outcome, wrong(error));
    }
    return null;
  };
  const submit = (event) => {
    event.preventDefault();
    run(false);
  };
  return el(
    "form.card.stack",
    { "aria-label": "Upload facts", on: { submit } },
    el("h2", {}, "Upload many"),
    rows.element,
    outcome,
    el(
      "div.row",
      {},
      el("button.button.button-main", {}, icon("upload"), "Add them"),
      el("button.button", { type: "button", on: { click: () => run(true) } }, "Check first"),
    ),
  );
}

function uploadResult({ accepted, unchanged, rejected, num_rejected: faults = rejected.length }, dryRun) {
  const verb = dryRun ? "would be added" : "added";
  const summary = `${counted(accepted, "fact")} ${verb}, ${count(unchanged)} known already, ${counted(faults, "row")} at fault.`;
  const item = (row) => el("li", {}, el("strong.number", {}, `Row ${count(row.row)}: `), row.message);
  return el(
    "div.stack.stack-tight",
    {},
    el("p", {}, el("strong", {}, summary)),
    rejected.length > 0 && el("ul.errors.small", {}, rejected.slice(0, ROWS).map(item)),
    faults > ROWS && el("p.small.soft", {}, `And ${count(faults - Math.min(ROWS, rejected.length))} more.`),
  );
}

function drawChanges({ items, next }, canWrite) {
  learnFacts(items);
  const title = el("h2", {}, "Changes");
  if (items.length === 0) return [title, empty("The graph is as it was loaded", "Facts that you add or remove are listed here, and can be undone.")];
  const columns = [
    { title: "Change", cell: (item) => changeBadges(item) },
    { title: "Fact", kind: "main", cell: (item) => [factText(item, { links: true }), item.why && el("div.small.soft", {}, item.why)] },
    { title: "Source", cell: (item) => el("span.small", {}, item.source || "–") },
    { title: "Who and when", cell: (item) => [el("div", {}, item.author || "–"), el("div.moment", {}, moment(item.time))] },
    { title: "Actions", kind: "actions", hideTitle: true, cell: (item) => canWrite && !item.undone && undo(item) },
  ];
  return [
    title,
    table("Changes, newest first", columns, items, { rowAttributes: (item) => ({ class: item.undone ? "is-undone" : null }) }),
    next && el("div", {}, el("a.button", { href: href("facts", { before: next }) }, "Older")),
  ];
}

function changeBadges(item) {
  const kind = item.action === "remove" ? el("span.badge.badge-bad", {}, "Removed") : el("span.badge.badge-good", {}, "Added");
  return el("span.row", {}, kind, item.undone && el("span.badge.badge-plain", {}, "undone"));
}

function undo(item) {
  const click = async () => {
    try {
      await api.undoFact(item.id);
      toast("Undone.");
      again();
    } catch (error) {
      toast(error.message);
    }
  };
  return el("button.button.button-small", { type: "button", "aria-label": `Undo: ${item.head} ${item.relation} ${item.tail}`, on: { click } }, icon("undo"), "Undo");
}
