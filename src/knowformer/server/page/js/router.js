// Addresses in the hash, so that every view can be shared and back and forward work.
import { el } from "./dom.js";
import { announce } from "./live.js";

let routes = {};
let outlet = null;
let shown = null; // the view on the screen: its name and what cancels its requests
let afterwards = () => {};

/** Returns the address of a view: href("why", { head, relation, tail }). Lists give a name twice. */
export function href(name, params = {}) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== null && each !== "" && each !== false) {
        search.append(key, each === true ? "1" : String(each));
      }
    }
  }
  return `#/${name}${search.size ? `?${search}` : ""}`;
}

/** Goes to a view; `replace` leaves no step to go back to. */
export function go(name, params = {}, { replace = false } = {}) {
  const address = href(name, params);
  if (address === location.hash) {
    show();
  } else if (replace) {
    history.replaceState(null, "", address);
    show();
  } else {
    location.hash = address;
  }
}

/** Writes the address of what is shown already: nothing is drawn anew. */
export function rename(name, params = {}) {
  history.replaceState(null, "", href(name, params));
}

function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { name: path, params: new URLSearchParams(search) };
}

function show() {
  const { name, params } = parse(location.hash);
  const route = routes[name];
  if (!route) return go("ask", {}, { replace: true });
  const isSame = shown?.name === name;
  const focused = isSame ? document.activeElement?.id : null;
  shown?.canceller.abort();
  shown = { name, canceller: new AbortController() };
  const view = el("div.view.stack.stack-loose");
  outlet.replaceChildren(view);
  document.title = `${route.title(params)} · knowformer`;
  route.render(view, params, { signal: shown.canceller.signal });
  afterwards(route.section ?? name);
  settle(view, { isSame, focused, title: route.title(params) });
}

/** A new view starts at its top with its heading in focus; the same view keeps what had the focus. */
function settle(view, { isSame, focused, title }) {
  if (isSame) {
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    return;
  }
  scrollTo(0, 0);
  if (outlet.dataset.started) {
    const heading = view.querySelector("h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
    announce(title);
  }
  outlet.dataset.started = "yes";
}

/** Draws the view that the address names, now and whenever it changes. */
export function start(table, element, onShown) {
  routes = table;
  outlet = element;
  afterwards = onShown;
  addEventListener("hashchange", show);
  show();
}

/** Draws the view again, after a token was given or a request is to be tried again. */
export const again = show;
