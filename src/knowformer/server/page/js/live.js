// What a screen reader is told, and short messages that go away by themselves.
import { add, el } from "./dom.js";

const SHOWN = 5000; // milliseconds

/** Has a screen reader say a sentence. */
export function announce(sentence) {
  const region = document.getElementById("live");
  region.textContent = "";
  setTimeout(() => {
    region.textContent = sentence;
  }, 50);
}

/** Shows a sentence for some seconds, and has it said. */
export function toast(sentence, ...more) {
  const box = el("div.toast.appear", {}, el("span", {}, sentence), more);
  add(document.getElementById("toasts"), box);
  announce(sentence);
  setTimeout(() => box.remove(), SHOWN);
}
