// How a drawn graph looks: colours are the page's own tokens, read anew when light turns to dark.

const LINE = 19; // characters of a name on a line of its box
const MOST_LINES = 3;

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Returns a name on short lines, cut at the end if it is very long. */
export function wrapped(name) {
  const lines = [""];
  for (const word of name.split(" ")) {
    const last = lines.at(-1);
    if (last && last.length + word.length + 1 > LINE) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  const shown = lines.slice(0, MOST_LINES).map((line) => (line.length > LINE + 5 ? `${line.slice(0, LINE + 3)}…` : line));
  if (lines.length > MOST_LINES) shown[MOST_LINES - 1] += " …";
  return shown.join("\n");
}

/** Returns the size of the box that holds a wrapped name. */
export function boxOf(text) {
  const lines = text.split("\n");
  return { width: Math.max(...lines.map((line) => line.length)) * 6.9 + 26, height: lines.length * 16 + 16 };
}

/** Returns the style sheet of the graph. */
export function graphStyle() {
  const font = token("font");
  return [
    {
      selector: "node",
      style: {
        shape: "round-rectangle",
        "corner-radius": 9,
        width: "data(width)",
        height: "data(height)",
        "background-color": token("surface"),
        "border-width": 1.25,
        "border-color": token("line-strong"),
        color: token("ink"),
        label: "data(label)",
        "font-family": font,
        "font-size": 12.5,
        "font-weight": 500,
        "text-wrap": "wrap",
        "text-max-width": 400,
        "text-valign": "center",
        "text-halign": "center",
        "line-height": 1.25,
      },
    },
    { selector: "node.asked", style: { "background-color": token("accent"), "border-color": token("accent"), color: token("accent-ink") } },
    { selector: "node.answer", style: { "background-color": token("answer-soft"), "border-color": token("answer"), "border-width": 2 } },
    { selector: "node.more", style: { "background-color": token("sunken"), "border-style": "dashed", color: token("ink-soft") } },
    { selector: "node:selected, node.hover", style: { "border-color": token("focus"), "border-width": 2.5 } },
    {
      selector: "edge",
      style: {
        width: "data(width)",
        "curve-style": "bezier",
        "control-point-step-size": 46,
        "line-color": token("line-strong"),
        "target-arrow-color": token("line-strong"),
        "target-arrow-shape": "triangle",
        "arrow-scale": 0.95,
        label: "data(label)",
        color: token("ink-soft"),
        "font-family": font,
        "font-size": 11,
        "text-background-color": token("surface"),
        "text-background-opacity": 0.92,
        "text-background-padding": 2.5,
        "text-background-shape": "round-rectangle",
        "text-rotation": "autorotate",
      },
    },
    {
      selector: "edge.question",
      style: {
        "line-style": "dashed",
        "line-color": token("answer"),
        "target-arrow-color": token("answer"),
        color: token("answer"),
        "font-weight": 600,
        "curve-style": "unbundled-bezier",
        "control-point-distances": "data(bend)",
        "control-point-weights": 0.5,
      },
    },
    { selector: "edge.more", style: { "line-style": "dotted", width: 1.2 } },
    { selector: "edge.strong, edge.hover", style: { "line-color": token("accent"), "target-arrow-color": token("accent"), color: token("accent") } },
    { selector: ".dim", style: { opacity: 0.18 } },
  ];
}
