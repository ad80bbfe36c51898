// Pages of a list that is here already.
import { el } from "../dom.js";
import { count } from "../format.js";
import { icon } from "../icons.js";

/** Previous and next; nothing where one page holds all. */
export function pager({ page, size, total, onPage }) {
  const last = Math.max(0, Math.ceil(total / size) - 1);
  if (last === 0) return null;
  const button = (label, name, target, isThere) =>
    el("button.button.button-icon", { id: `page-${name}`, type: "button", "aria-label": label, disabled: !isThere, on: { click: () => onPage(target) } }, icon(name));
  const first = page * size;
  return el(
    "div.row.pager",
    {},
    button("Previous page", "left", page - 1, page > 0),
    el("span.small.number", {}, `${count(first + 1)} to ${count(Math.min(first + size, total))} of ${count(total)}`),
    button("Next page", "right", page + 1, page < last),
  );
}
