// Batch: a file of questions in, a file of answers out, with progress.
import { api } from "../api.js";
import { again } from "../router.js";
import { announce, toast } from "../live.js";
import { count, counted, moment } from "../format.js";
import { el, fill } from "../dom.js";
import { empty, fillWhenReady, note, wrong } from "../components/notice.js";
import { FileText } from "../components/file_text.js";
import { icon } from "../icons.js";
import { mayWrite } from "../session.js";
import { select, viewHead } from "../components/pieces.js";

const PAUSE = 1000; // milliseconds between looks at jobs that run
const STATES = {
  queued: ["Waiting", "badge-plain"],
  running: ["Running", "badge-accent"],
  done: ["Done", "badge-good"],
  failed: ["Failed", "badge-bad"],
  cancelled: ["Cancelled", "badge-warn"],
};

export const view = {
  title: () => "Batch",

  render(outlet, params, { signal }) {
    const form = el("div");
    const list = el("ul.jobs");
    fill(
      outlet,
      viewHead("Batch", "A file of questions, answered in the background. Jobs go on when you leave, and after a restart of the server."),
      form,
      el("section.stack", { "aria-label": "Jobs" }, el("h2", {}, "Jobs"), list),
    );
    fillWhenReady(form, mayWrite(), (canWrite) => (canWrite ? startForm() : note("Your token may read, not start jobs.")), { lines: 3 });
    fillWhenReady(list, api.jobs(signal), ({ items }) => drawJobs(list, items, signal), { lines: 3 });
  },
};

function startForm() {
  const rows = new FileText({
    label: "Questions",
    id: "batch",
    hint: "A question a row: head, relation, tail, with ? for what is asked.",
    example: "Vitamin\tAffects\t?\n?\tTreats\tNeoplastic_Process",
  });
  const k = select("batch-k", [[1, "1"], [3, "3"], [10, "10"], [50, "50"]], 10);
  const format = select("batch-format", [["tsv", "TSV"], ["csv", "CSV"], ["jsonl", "JSON lines"], ["parquet", "Parquet"]], "tsv");
  const newOnly = el("input", { type: "checkbox", role: "switch", id: "batch-new" });
  const errors = el("div");
  const submit = async (event) => {
    event.preventDefault();
    if (rows.body === null) return fill(errors, note("Choose a file or paste rows first."));
    try {
      await api.startJob(rows.body, rows.type, { k: k.value, new_only: newOnly.checked, format: format.value });
      toast("The job has started.");
      return again();
    } catch (error) {
      return fill(errors, wrong(error));
    }
  };
  return el(
    "form.card.stack",
    { "aria-label": "Start a job", on: { submit } },
    rows.element,
    el(
      "div.row",
      {},
      el("span.row", {}, el("label.small", { for: "batch-k" }, "Answers each"), k),
      el("span.row", {}, el("label.small", { for: "batch-format" }, "Result as"), format),
      el("label.check.switch", {}, newOnly, "New facts only"),
    ),
    errors,
    el("div", {}, el("button.button.button-main", {}, "Start")),
  );
}

function drawJobs(list, jobs, signal) {
  if (jobs.some(isOpen)) setTimeout(() => refresh(list, jobs, signal), PAUSE);
  if (jobs.length === 0) return el("li", {}, empty("No job yet", "Start one above; it is listed here with its progress."));
  return jobs.map((job) => drawJob(job));
}

const isOpen = (job) => job.state === "queued" || job.state === "running";

async function refresh(list, before, signal) {
  if (signal.aborted) return;
  try {
    const { items } = await api.jobs(signal);
    const ended = items.filter((job) => !isOpen(job) && before.some((each) => each.id === job.id && isOpen(each)));
    for (const job of ended) announce(`A job is ${STATES[job.state][0].toLowerCase()}.`);
    const focused = list.contains(document.activeElement) ? document.activeElement.id : null;
    fill(list, drawJobs(list, items, signal));
    if (focused) document.getElementById(focused)?.focus();
  } catch (error) {
    if (error.name !== "AbortError") fill(list, el("li", {}, wrong(error)));
  }
}

function drawJob(job) {
  const [word, badge] = STATES[job.state] ?? [job.state, "badge-plain"];
  const total = Math.max(1, job.total ?? 0);
  const bar = el("progress", { max: total, value: job.state === "done" ? total : (job.done ?? 0), "aria-label": "Progress" });
  return el(
    "li.card.job",
    {},
    el("div.row.row-ends", {}, el("div.row", {}, el(`span.badge.${badge}`, {}, word), el("span.moment", {}, moment(job.created))), actions(job)),
    isOpen(job) && bar,
    el("p.small.number", {}, `${count(job.done ?? 0)} of ${counted(job.total ?? 0, "question")}${job.rejected ? `, ${counted(job.rejected, "row")} at fault` : ""}`),
    job.error && el("p.small.bad", {}, job.error),
  );
}

function actions(job) {
  const button = (id, text, sign, run) => {
    const click = () => run().catch((error) => toast(error.message));
    return el("button.button.button-small", { id: `${id}-${job.id}`, type: "button", on: { click } }, icon(sign), text);
  };
  const ending = job.format ?? "tsv";
  return el(
    "div.row",
    {},
    job.state === "done" && button("result", "Answers", "download", () => api.saveResult(job.id, `answers.${ending}`)),
    job.rejected > 0 && !isOpen(job) && button("rejected", "Rows at fault", "download", () => api.saveRejected(job.id, "rejected.tsv")),
    isOpen(job) && button("cancel", "Cancel", "close", () => api.cancelJob(job.id).then(() => again())),
  );
}
