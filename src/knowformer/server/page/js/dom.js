// Elements made of data. Text is always set as text: nothing that arrives is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Makes an element: el("p.soft", { id: "x", on: { click } }, "text", child, [more]).
 * Attributes that are null or false are left out; children too. `set` assigns properties.
 */
export function el(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  const { on = {}, set = {}, ...rest } = attributes;
  for (const [name, value] of Object.entries(rest)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  Object.assign(element, set);
  return add(element, ...children);
}

/** Appends children: elements, text, lists of them; null and false are skipped. */
export function add(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
  return parent;
}

/** Replaces what an element holds. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  return add(parent, ...children);
}

/** Makes an icon out of the paths of a 24 x 24 drawing; it says nothing to a screen reader. */
export function svgIcon(paths) {
  const icon = document.createElementNS(SVG, "svg");
  icon.setAttribute("viewBox", "0 0 24 24");
  icon.setAttribute("class", "icon");
  icon.setAttribute("aria-hidden", "true");
  for (const d of paths) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    icon.append(path);
  }
  return icon;
}

let lastId = 0;

/** Returns an id that no other element of the page has. */
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Calls a function once the calls have paused. */
export function debounced(call, milliseconds) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), milliseconds);
  };
}
