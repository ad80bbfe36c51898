// Our own line icons, drawn on a grid of 24.
import { svgIcon } from "./dom.js";

const circle = (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;

const PATHS = {
  ask: [circle(11, 11, 6.5), "m16 16 4.5 4.5"],
  graph: [circle(6, 17.5, 2.5), circle(18, 17.5, 2.5), circle(12, 6, 2.5), "M10.8 8.2 7.2 15.3M13.2 8.2l3.6 7.1M8.5 17.5h7"],
  facts: ["M12 5v14M5 12h14"],
  decisions: ["m4 12.5 5 5L20 6.5"],
  batch: ["M5 6h14M5 12h14M5 18h9"],
  model: ["M4 19V9M10 19V5M16 19v-7M21 19H3"],
  close: ["m6 6 12 12M18 6 6 18"],
  download: ["M12 4v11M7 10.5l5 5 5-5M5 20h14"],
  upload: ["M12 16V5M7 9.5l5-5 5 5M5 20h14"],
  link: ["M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7L12 7M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7L12 17"],
  undo: ["M4 9h10a5 5 0 0 1 0 10H9M4 9l4-4M4 9l4 4"],
  plus: ["M12 6v12M6 12h12"],
  minus: ["M6 12h12"],
  fit: ["M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5"],
  cross: ["m6.5 6.5 11 11M17.5 6.5l-11 11"],
  unsure: ["M9 9.2a3 3 0 1 1 4.6 2.5c-1 .7-1.6 1.2-1.6 2.6M12 18v.1"],
  left: ["M14.5 6 8.5 12l6 6"],
  right: ["m9.5 6 6 6-6 6"],
  info: [circle(12, 12, 8.5), "M12 11v5M12 8v.1"],
  warning: ["M12 4 2.8 20h18.4zM12 10v4.5M12 17.3v.1"],
};

/** Returns the icon of this name. */
export function icon(name) {
  return svgIcon(PATHS[name]);
}
