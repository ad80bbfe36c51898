// Tables that stay tables for a screen reader, whatever the style sheet makes of them on a phone.
import { el } from "../dom.js";

/**
 * A table of columns { title, cell(row) -> content, kind: "number"|"main"|"actions" } and rows.
 * Roles are written out, because a table drawn as cards would lose them.
 */
export function table(caption, columns, rows, { rowAttributes = () => ({}) } = {}) {
  const heads = columns.map(({ title, kind, hideTitle, hint }) =>
    el(`th${kind ? `.${kind}` : ""}`, { scope: "col", role: "columnheader", title: hint }, hideTitle ? el("span.visually-hidden", {}, title) : title),
  );
  const body = rows.map((row, place) =>
    el(
      "tr",
      { role: "row", ...rowAttributes(row, place) },
      columns.map(({ title, kind, cell }) => el(`td${kind ? `.${kind}` : ""}`, { role: "cell", "data-title": title }, cell(row, place))),
    ),
  );
  return el(
    "table.table",
    { role: "table" },
    el("caption.visually-hidden", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    el("tbody", { role: "rowgroup" }, body),
  );
}
