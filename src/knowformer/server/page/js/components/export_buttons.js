// Buttons that save a list in the formats that the server writes.
import { el } from "../dom.js";
import { icon } from "../icons.js";
import { toast } from "../live.js";

const FORMATS = [["tsv", "TSV"], ["parquet", "Parquet"], ["nt", "N-Triples"]];

export function exportButtons(what, save) {
  const button = ([format, text]) => {
    const click = () => save(format).catch((error) => toast(error.message));
    return el("button.button.button-small", { type: "button", "aria-label": `Export ${what} as ${text}`, on: { click } }, icon("download"), text);
  };
  return el("div.row", { role: "group", "aria-label": `Export ${what}` }, FORMATS.map(button));
}
