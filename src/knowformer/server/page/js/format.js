// Numbers, times and odds as people read them. Words for odds are those of the command line.

const NO_CHANGE = 0.05; // log-odds: five percent of the odds
const MANY_FOLD = 1000;

const whole = new Intl.NumberFormat("en");

/** 12345 as 12,345. */
export const count = (number) => whole.format(number);

/** "1 fact", "12 facts". */
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A probability as a percentage, on one line; what is small keeps a digit that says something. */
export function percent(probability) {
  if (probability <= 0) return "0\u00a0%";
  if (probability >= 0.9995) return probability >= 1 ? "100\u00a0%" : ">\u00a099.9\u00a0%";
  if (probability < 0.0005) return "<\u00a00.1\u00a0%";
  return `${(100 * probability).toFixed(1)}\u00a0%`;
}

/** A rank: ties give halves. */
export const rank = (number) => (Number.isInteger(number) ? count(number) : number.toFixed(1));

/** What a loss of log-odds does to the odds, in words; a gain is a negative loss. */
export function oddsInWords(lost) {
  const moves = lost > 0 ? "fall" : "rise";
  const times = Math.exp(Math.min(Math.abs(lost), 50));
  if (Math.abs(lost) < NO_CHANGE) return "odds hardly change";
  if (times < 2) return `odds ${moves} by ${Math.round(100 * Math.abs(Math.exp(-lost) - 1))}\u00a0%`;
  if (times > MANY_FOLD) return `odds ${moves} more than ${count(MANY_FOLD)}-fold`;
  return `odds ${moves} ${times.toFixed(times < 10 ? 1 : 0)}-fold`;
}

/** A moment as the reader's own clock shows it. */
export function moment(time) {
  const date = new Date(typeof time === "number" ? time * 1000 : time);
  if (Number.isNaN(date.valueOf())) return String(time);
  return date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** Rows as CSV; cells with a comma, a quote or a line break are quoted. */
export function csv(columns, rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
}
