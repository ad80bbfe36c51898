// What the page knows all the time: the graph, what one may do, and one's name.
import { api } from "./api.js";

const AUTHOR = "knowformer-author";

let graph = null;

/** Returns the graph's summary, asked for once and again after a change. */
export function theGraph() {
  graph ??= api.graph().catch((error) => {
    graph = null;
    throw error;
  });
  return graph;
}

/** Forgets the summary: the graph has changed, or who asks. */
export function forgetGraph() {
  graph = null;
}

/** Tells whether facts and decisions may be written. */
export async function mayWrite() {
  const { roles = ["read", "write"] } = await theGraph();
  return roles.includes("write");
}

/** Who decides: as typed last time in this browser. */
export const author = () => localStorage.getItem(AUTHOR) ?? "";

/** Remembers who decides. */
export function rememberAuthor(name) {
  if (name) localStorage.setItem(AUTHOR, name);
}
