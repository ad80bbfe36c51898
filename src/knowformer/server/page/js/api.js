// The server's API: one function for each of its addresses. Errors are Problems with its sentence.

const TOKEN = "knowformer-token";
const KEPT = 40; // answers that are kept, so that going back is instant

/** What the server says is wrong, as it says it. */
export class Problem extends Error {
  constructor({ status = 0, title = "", detail = "", suggestions = [], field = null }) {
    super(detail || title);
    this.status = status;
    this.title = title;
    this.suggestions = suggestions;
    this.field = field;
  }
}

const listeners = new Set();
const kept = new Map();
let snapshot = null;

/** Calls a listener with the number of the newest snapshot whenever it changes. */
export function onSnapshot(listener) {
  listeners.add(listener);
}

/** Keeps the token for this tab alone. */
export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

function noteSnapshot(response) {
  const seen = Number(response.headers.get("Knowformer-Snapshot") ?? NaN);
  if (Number.isNaN(seen) || seen === snapshot) return;
  const first = snapshot === null;
  snapshot = seen;
  kept.clear();
  if (!first) listeners.forEach((listener) => listener(seen));
}

async function problemOf(response) {
  let content = {};
  try {
    content = await response.json();
  } catch {
    content = { detail: `The server answered with status ${response.status}.` };
  }
  const wait = response.headers.get("Retry-After");
  if (response.status === 429 && wait) content.detail = `${content.detail} Try again in ${wait} s.`;
  const suggestions = (content.suggestions ?? []).map((each) => (typeof each === "string" ? each : each.name));
  return new Problem({ ...content, suggestions, status: response.status });
}

async function send(method, path, { query = {}, body, headers = {}, signal } = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  const address = `v1/${path}${search.size ? `?${search}` : ""}`;
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers = { ...headers, Authorization: `Bearer ${token}` };
  let response;
  try {
    response = await fetch(address, { method, body, headers, signal, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: "No answer", detail: "The server does not answer. Is it still running? Start it again with 'knowformer serve', then try again." });
  }
  if (!response.ok) throw await problemOf(response);
  noteSnapshot(response);
  return response;
}

const get = async (path, query, signal) => (await send("GET", path, { query, signal })).json();

const asJson = (content) => ({ body: JSON.stringify(content), headers: { "Content-Type": "application/json" } });

/** Asks something that changes nothing; the same question on the same snapshot is asked once. */
async function ask(path, content, signal) {
  const key = `${path} ${JSON.stringify(content)}`;
  if (kept.has(key)) return kept.get(key);
  const answer = await (await send("POST", path, { ...asJson(content), signal })).json();
  if (kept.size >= KEPT) kept.delete(kept.keys().next().value);
  kept.set(key, answer);
  return answer;
}

async function write(method, path, options = {}) {
  const headers = { ...options.headers, "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) };
  const response = await send(method, path, { ...options, headers });
  return response.status === 204 ? null : response.json();
}

/** Fetches a file and saves it under the name that the server gives, or this one. */
async function save(path, query, name) {
  const response = await send("GET", path, { query });
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  saveBlob(await response.blob(), named ? named[1] : name);
}

/** Saves what the page has made itself. */
export function saveBlob(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export const api = {
  graph: (signal) => get("graph", {}, signal),
  model: (signal) => get("model", {}, signal),
  audit: (signal) => get("audit", {}, signal),
  entities: (q, limit, signal) => get("entities", { q, limit }, signal),
  relations: (q, limit, signal) => get("relations", { q, limit }, signal),
  entity: (query, signal) => get("entity", query, signal),

  answer: (question, signal) => ask("answer", question, signal),
  explain: (fact, signal) => ask("explain", fact, signal),
  compare: (question, signal) => ask("compare", question, signal),
  whatIf: (question, signal) => ask("what-if", question, signal),

  facts: (query, signal) => get("facts", query, signal),
  addFact: (fact) => write("POST", "facts", asJson(fact)),
  undoFact: (id) => write("DELETE", `facts/${encodeURIComponent(id)}`),
  uploadFacts: (body, type, dryRun, author) =>
    write("POST", "facts/upload", { query: { dry_run: dryRun, author }, body, headers: { "Content-Type": type } }),
  exportFacts: (format) => save("facts/export", { format }, `facts.${format}`),

  decisions: (query, signal) => get("decisions", query, signal),
  decide: (decision) => write("POST", "decisions", asJson(decision)),
  undoDecision: (id) => write("DELETE", `decisions/${encodeURIComponent(id)}`),
  exportDecisions: (format) => save("decisions/export", { format }, `decisions.${format}`),

  jobs: (signal) => get("jobs", {}, signal),
  startJob: (body, type, query) => write("POST", "jobs", { query, body, headers: { "Content-Type": type } }),
  cancelJob: (id) => write("DELETE", `jobs/${encodeURIComponent(id)}`),
  saveResult: (id, name) => save(`jobs/${encodeURIComponent(id)}/result`, {}, name),
  saveRejected: (id, name) => save(`jobs/${encodeURIComponent(id)}/rejected`, {}, name),
};
