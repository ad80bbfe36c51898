// A field that searches as one types: the editable combobox with list of the ARIA practices.
import { api } from "../api.js";
import { counted } from "../format.js";
import { debounced, el, fill, freshId } from "../dom.js";
import { icon } from "../icons.js";
import { announce } from "../live.js";
import { learn, nameOf } from "../names.js";

const PAUSE = 110; // milliseconds without a key before it asks
const SHOWN = 12;

/** One field. `value` is the name that is chosen, or what was typed if nothing was. */
export class Combobox {
  /**
   * @param {object} options
   * @param {string} options.label what the field is called
   * @param {"entity"|"relation"} options.kind what it searches
   * @param {string} [options.id] of the input, so that the focus finds it again
   * @param {string} [options.value] a name to start with
   * @param {string} [options.placeholder]
   * @param {(name: string) => void} [options.onChange] called when another name is chosen
   */
  constructor({ label, kind, id = freshId("field"), value = "", placeholder = "", onChange = () => {} }) {
    this.kind = kind;
    this.onChange = onChange;
    this.items = [];
    this.active = -1;
    this.listId = `${id}-list`;
    this.input = el("input.input", {
      id,
      type: "text",
      role: "combobox",
      placeholder,
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": this.listId,
      on: {
        input: () => this.typed(),
        keydown: (event) => this.pressed(event),
        blur: () => this.close(),
        click: () => this.search(),
      },
    });
    this.clearButton = el(
      "button.combobox-clear",
      { type: "button", "aria-label": `Clear ${label.toLowerCase()}`, hidden: true, on: { click: () => this.clear() } },
      icon("close"),
    );
    this.list = el("ul.combobox-list", { id: this.listId, role: "listbox", "aria-label": label, hidden: true });
    // The list must not take the focus from the input, or the input would close it.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.element = el(
      "div.field",
      {},
      el("label.label", { for: id }, label),
      el("div.combobox", {}, this.input, this.clearButton, this.list),
    );
    this.searchSoon = debounced(() => this.search(), PAUSE);
    this.show(value);
  }

  /** The name chosen; text that is exactly a name's readable form counts as that name. */
  get value() {
    const text = this.input.value.trim();
    if (this.chosen !== null && text === nameOf(this.kind, this.chosen)) return this.chosen;
    const same = this.items.find(
      (item) => item.name === text || nameOf(this.kind, item.name).toLowerCase() === text.toLowerCase(),
    );
    return same?.name ?? text;
  }

  set value(name) {
    this.show(name);
    this.onChange(name);
  }

  show(name) {
    this.chosen = name || null;
    this.input.value = name ? nameOf(this.kind, name) : "";
    this.input.title = name ?? "";
    this.clearButton.hidden = !name;
    if (name) this.readLabel(name);
  }

  /** A name out of an address may have a label that no response has brought yet. */
  async readLabel(name) {
    try {
      const { items } = await this.ask(name, 1);
      if (items[0]?.name !== name || this.chosen !== name) return;
      this.input.value = nameOf(this.kind, name);
    } catch {
      // The name itself is shown; whatever is asked with it will say what is wrong.
    }
  }

  async ask(text, limit, signal) {
    const found = await (this.kind === "entity" ? api.entities : api.relations)(text, limit, signal);
    for (const item of found.items) learn(this.kind, item.name, item.label);
    return found;
  }

  clear() {
    this.value = "";
    this.items = [];
    this.close();
    this.input.focus();
  }

  typed() {
    this.clearButton.hidden = this.input.value === "";
    if (this.input.value.trim() === "") this.chosen = null;
    this.onChange(this.value);
    this.searchSoon();
  }

  async search() {
    this.canceller?.abort();
    this.canceller = new AbortController();
    const typed = this.input.value.trim();
    const isChosen = this.chosen !== null && typed === nameOf(this.kind, this.chosen);
    try {
      const { items } = await this.ask(isChosen ? "" : typed, SHOWN, this.canceller.signal);
      if (document.activeElement !== this.input) return;
      this.items = items;
      this.draw(isChosen ? "" : typed);
    } catch (error) {
      if (error.name !== "AbortError") this.drawNote(error.message);
    }
  }

  draw(typed) {
    if (this.items.length === 0) return this.drawNote("Nothing has a name like this.");
    this.options = this.items.map((item, place) => this.option(item, place, typed));
    fill(this.list, this.options);
    this.open();
    this.activate(-1);
    announce(counted(this.items.length, "suggestion"));
  }

  drawNote(sentence) {
    this.items = [];
    this.options = [];
    fill(this.list, el("li.combobox-note", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, sentence));
    this.open();
    this.activate(-1);
    announce(sentence);
  }

  option(item, place, typed) {
    const aside = item.match === "similar" && typed ? "similar" : counted(item.facts ?? 0, "fact");
    return el(
      "li",
      {
        id: `${this.listId}-${place}`,
        role: "option",
        "aria-selected": "false",
        title: item.name,
        on: { click: () => this.choose(place), mousemove: () => this.activate(place) },
      },
      el("span", {}, marked(nameOf(this.kind, item.name), typed)),
      el("small", {}, aside),
    );
  }

  pressed(event) {
    const isOpen = !this.list.hidden;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) {
      event.preventDefault();
      if (!isOpen) this.search();
      else this.move(moves[event.key]);
    } else if (event.key === "Enter" && isOpen && this.active >= 0) {
      event.preventDefault();
      this.choose(this.active);
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      this.close();
    } else if (event.key === "Escape" && this.input.value) {
      event.preventDefault();
      this.clear();
    }
  }

  move(step) {
    const places = this.items.length + 1; // one of them is none
    if (places > 1) this.activate(((this.active + 1 + step + places) % places) - 1);
  }

  activate(place) {
    this.options[this.active]?.setAttribute("aria-selected", "false");
    this.active = place;
    const option = this.options[place];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  choose(place) {
    this.value = this.items[place].name;
    this.close();
  }

  open() {
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
  }

  close() {
    this.canceller?.abort();
    this.list.hidden = true;
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}

/** The text with the part that was typed marked. */
function marked(text, typed) {
  const start = typed ? text.toLowerCase().indexOf(typed.toLowerCase()) : -1;
  if (start < 0) return text;
  const end = start + typed.length;
  return [text.slice(0, start), el("mark", {}, text.slice(start, end)), text.slice(end)];
}
