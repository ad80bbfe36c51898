// Rows from a file or from the clipboard: a place to drop, a button to choose, a box to paste.
import { el, fill, freshId } from "../dom.js";
import { icon } from "../icons.js";

const TYPES = {
  tsv: "text/tab-separated-values",
  txt: "text/tab-separated-values",
  csv: "text/csv",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
};

/** Takes a file or pasted rows; `body` and `type` are what is to be sent, null if nothing was given. */
export class FileText {
  constructor({ label, example, hint, id }) {
    this.file = null;
    this.chosen = el("p.small", { role: "status" });
    this.input = el("input.visually-hidden", {
      id: `${id}-file`,
      type: "file",
      accept: ".tsv,.txt,.csv,.jsonl,.ndjson",
      on: { change: (event) => this.take(event.target.files[0]) },
    });
    this.text = el("textarea.code", { id: `${id}-text`, rows: 5, placeholder: example, spellcheck: "false", "aria-describedby": freshId("hint") });
    const drop = el(
      "div.drop",
      {
        on: {
          dragover: (event) => {
            event.preventDefault();
            drop.dataset.over = "yes";
          },
          dragleave: () => delete drop.dataset.over,
          drop: (event) => {
            event.preventDefault();
            delete drop.dataset.over;
            this.take(event.dataTransfer.files[0]);
          },
        },
      },
      el("p.soft.small", {}, "Drop a .tsv, .csv or .jsonl file here, or"),
      el("label.button.file-button", { for: this.input.id }, icon("upload"), "Choose a file", this.input),
      this.chosen,
    );
    const paste = el(
      "details",
      {},
      el("summary", {}, "Paste rows instead"),
      el("div.field", {}, el("label.label", { for: this.text.id }, "Rows, a tab between columns"), this.text),
    );
    this.element = el("fieldset.stack.stack-tight", {}, el("legend", {}, label), el("p.hint", { id: this.text.getAttribute("aria-describedby") }, hint), drop, paste);
  }

  take(file) {
    this.file = file ?? null;
    fill(this.chosen, file ? el("strong", {}, file.name) : null);
  }

  get body() {
    return this.file ?? (this.text.value.trim() ? this.text.value : null);
  }

  get type() {
    const ending = this.file?.name.split(".").at(-1).toLowerCase();
    return TYPES[ending] ?? TYPES.tsv;
  }

  clear() {
    this.take(null);
    this.input.value = "";
    this.text.value = "";
  }
}
