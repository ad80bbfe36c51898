// Ask: three fields, one left empty; then the answers.
import { AnswerList } from "../components/answer_list.js";
import { announce } from "../live.js";
import { api } from "../api.js";
import { Combobox } from "../components/combobox.js";
import { copyLink } from "../components/copy_link.js";
import { count, percent } from "../format.js";
import { el, fill } from "../dom.js";
import { empty, fillWhenReady } from "../components/notice.js";
import { factKey } from "../components/path_layout.js";
import { go, href } from "../router.js";
import { labelled, questionOf, questionSentence, questionTabs, questionText, select, viewHead } from "../components/pieces.js";
import { learn, nameOf } from "../names.js";
import { theGraph } from "../session.js";

const FIELDS = [
  ["head", "Head", "entity"],
  ["relation", "Relation", "relation"],
  ["tail", "Tail", "entity"],
];

export const view = {
  title: (params) => questionText(questionOf(params)),

  render(outlet, params, { signal }) {
    const question = questionOf(params);
    const form = new AskForm(question, params);
    const results = el("section.stack", { "aria-label": "Answers" });
    fill(outlet, viewHead("Ask the graph", "Fill in two of the three and leave one empty: that is what you ask for."), form.element, results);
    const given = Object.values(question).filter(Boolean).length;
    if (given === 2) showAnswers(results, question, params, signal, form);
    else if (given === 3) go("why", question, { replace: true });
    else fillWhenReady(results, theGraph(), (graph) => examples(graph), { lines: 2 });
  },
};

/** The question and how it is to be answered. */
class AskForm {
  constructor(question, params) {
    this.params = params;
    this.fields = Object.fromEntries(
      FIELDS.map(([key, label, kind]) => [
        key,
        new Combobox({ label, kind, id: `ask-${key}`, value: question[key], placeholder: "search, or leave empty", onChange: () => this.say() }),
      ]),
    );
    this.sentence = el("p.question", { "aria-live": "polite" });
    this.button = el("button.button.button-main.button-large", { id: "ask-go" }, "Ask");
    this.newOnly = el("input", { type: "checkbox", role: "switch", id: "ask-new", on: { change: () => this.submitIfAsked() }, set: { checked: params.get("new") === "1" } });
    this.samples = select("ask-samples", [[1, "once"], [4, "4 times"], [8, "8 times"], [16, "16 times"]], params.get("samples") ?? 1, () => this.submitIfAsked());
    this.k = select("ask-k", [[10, "10"], [50, "50"], [200, "200"]], params.get("k") ?? 50, () => this.submitIfAsked());
    this.type = el("input.input", { id: "ask-type", value: params.get("type") ?? "", placeholder: "e.g. Treats:tail or Isa=Disease" });
    this.element = this.draw();
    this.say();
  }

  draw() {
    const submit = (event) => {
      event.preventDefault();
      this.submit();
    };
    const { head, relation, tail } = this.fields;
    return el(
      "form.card.ask-form",
      { role: "search", "aria-label": "Question", on: { submit } },
      el("div.ask-fields", {}, head.element, relation.element, tail.element),
      el("div.ask-line", {}, this.sentence, this.button),
      el(
        "div.row.ask-options",
        {},
        el("label.check.switch", {}, this.newOnly, "New facts only"),
        el("span.row", {}, el("label.small", { for: "ask-k" }, "Answers"), this.k),
        el("span.row", {}, el("label.small", { for: "ask-samples", title: "With other random noise each time, to see how much answers vary" }, "Asked"), this.samples),
        el(
          "details",
          { open: Boolean(this.params.get("type")) },
          el("summary", {}, "Narrow the candidates"),
          labelled("Type", this.type, "'R:tail' or 'R:head': what is a tail or head of relation R. 'R=T': what has the fact (it, R, T)."),
        ),
      ),
    );
  }

  question() {
    return Object.fromEntries(Object.entries(this.fields).map(([key, field]) => [key, field.value || undefined]));
  }

  say() {
    const question = this.question();
    const given = Object.values(question).filter(Boolean).length;
    const sentence = given === 2 ? questionSentence(question) : null;
    const hint = given === 3 ? "All three are given: you will see the reasons for this fact." : "Two of the three make a question.";
    fill(this.sentence, sentence ?? el("span.soft", {}, hint));
    this.button.textContent = given === 3 ? "Explain" : "Ask";
  }

  submitIfAsked() {
    if (Object.values(this.question()).filter(Boolean).length === 2) this.submit();
  }

  submit() {
    const question = this.question();
    const given = Object.values(question).filter(Boolean).length;
    if (given === 3) return go("why", question);
    if (given < 2) {
      const missing = Object.values(this.fields).find((field) => !field.value);
      announce("Fill in two of the three fields.");
      return missing.input.focus();
    }
    const { value: k } = this.k;
    const { value: samples } = this.samples;
    return go("ask", {
      ...question,
      new: this.newOnly.checked,
      k: k === "50" ? undefined : k,
      samples: samples === "1" ? undefined : samples,
      type: this.type.value.trim(),
    });
  }

  /** Puts a suggestion where the name stands that the server does not know. */
  take(suggestion, problem) {
    const isWrong = ([key, field]) => problem.field === key || (field.value && problem.message.includes(`'${field.value}'`));
    const [key] = Object.entries(this.fields).find(isWrong) ?? [];
    if (!key) return;
    this.fields[key].value = suggestion;
    this.submit();
  }
}

function showAnswers(place, question, params, signal, form) {
  const asked = {
    ...question,
    k: Number(params.get("k") ?? 50),
    new_only: params.get("new") === "1",
    samples: Number(params.get("samples") ?? 1),
    of_type: params.get("type") || undefined,
  };
  const draw = ([answers, verdicts]) => {
    const kind = answers.query.asks_for === "relation" ? "relation" : "entity";
    for (const answer of answers.answers) learn(kind, answer.entity ?? answer.relation, answer.label);
    tellFirst(answers, kind);
    return drawAnswers(question, answers, verdicts);
  };
  const lines = 8;
  fillWhenReady(place, Promise.all([api.answer(asked, signal), readVerdicts(signal)]), draw, {
    sentence: "The model is thinking",
    lines,
    onSuggestion: (name, problem) => form.take(name, problem),
  });
}

function tellFirst(answers, kind) {
  const [first] = answers.answers;
  const name = first && nameOf(kind, first.entity ?? first.relation);
  announce(first ? `${count(answers.answers.length)} answers. First: ${name}, ${percent(first.probability)}.` : "No answer.");
}

function drawAnswers(question, answers, verdicts) {
  const { query } = answers;
  const first = answers.answers[0]?.entity;
  const meta = `${count(query.candidates)} candidates, ${count(query.known)} of them known · snapshot ${answers.snapshot ?? 0}`;
  const list =
    answers.answers.length === 0
      ? empty("No new answer", "Everything that could answer is known already. Switch off 'New facts only' to see it.")
      : new AnswerList(question, answers, verdicts).element;
  return el(
    "div.stack.appear",
    {},
    questionTabs("ask", question, first),
    el(
      "div.row.row-ends",
      {},
      el("div", {}, el("h2", {}, questionSentence(question)), el("p.small.soft", {}, meta)),
      copyLink(),
    ),
    list,
  );
}

async function readVerdicts(signal) {
  // Answers are shown without them, too, should they not be had.
  const { items } = await api.decisions({ limit: 200 }, signal).catch(() => ({ items: [] }));
  // Newest first: the newest decision on a fact is the one that counts.
  return new Map(items.filter((item) => !item.undone).map((item) => [factKey(item), item.verdict]).reverse());
}

function examples(graph) {
  const fact = graph.example;
  if (!fact) return el("p.soft", {}, `${graph.name} has ${count(graph.entities)} entities and ${count(graph.facts)} facts.`);
  const { head, relation, tail } = fact;
  const questions = [{ head, relation }, { relation, tail }, { head, tail }];
  const link = (question) => el("li", {}, el("a.example", { href: href("ask", question) }, questionSentence(question)));
  return el(
    "div.stack",
    {},
    el("h2", {}, "Try one of these"),
    el("ul.examples", {}, questions.map(link)),
    el("p.small.soft", {}, `${graph.name}: ${count(graph.entities)} entities, ${count(graph.relations)} relations, ${count(graph.facts)} facts.`),
  );
}
