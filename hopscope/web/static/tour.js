// A tour in six questions. Each sets the state of the page, and has a line with the answer.

import { named } from "./changes.js";
import { button, fill, h, icon } from "./dom.js";
import { asks } from "./explained.js";
import { current } from "./losses.js";
import { arrows, everyHead, headName, headsOf } from "./paths.js";
import { counted, number, symbolName, whole } from "./words.js";

const NOTHING = { off: [], head: "", ghost: "", step: null, pane: "" };
const STOPS = 6;

/** The bar of the tour, which is visible while the address has a stop of the tour. */
export function tourOf(state) {
  const line = h("p", { role: "status" });
  const count = h("b", {});
  const back = button("back", () => go(state, state.tour - 1), { class: "plain" });
  const next = button("next", () => go(state, state.tour + 1), { class: "plain" });
  const end = icon("×", "End the tour", () => state.set({ ...NOTHING, tour: 0 }));
  const element = h("section", { class: "tour", "aria-label": "Tour", hidden: true }, count, line, back, next, end);
  state.watch("tour about example off answer losses step asking maps", () => {
    const stop = state.tour && offered(state) ? stops(state)[state.tour - 1] : null;
    element.hidden = !stop;
    if (!stop) return;
    count.textContent = `${state.tour} of ${STOPS}`;
    fill(line, h("strong", {}, stop.question), ` ${stop.answer()}`);
    back.hidden = state.tour === 1;
    next.hidden = state.tour === STOPS;
  });
  return element;
}

/** The button in the top bar that starts the tour. */
export function tourButton(state) {
  const title = "Six questions, answered here";
  const begin = button("tour", () => go(state, 1), { class: "plain", title, hidden: true });
  state.watch("about", () => {
    begin.hidden = !offered(state);
  });
  return begin;
}

/** The tour needs a model over facts with a circuit. */
function offered({ about }) {
  return Boolean(about?.task && about.circuit && arrows(about).length);
}

function go(state, number) {
  const { patch } = stops(state)[number - 1];
  state.set({ ...NOTHING, ...patch, tour: number });
}

function stops(state) {
  const { about } = state;
  const { task, model, circuit, theory } = about;
  const all = arrows(about);
  const last = task.symbols.at(-1);
  const moving = all.filter((its) => its.kind === "moves");
  const path = all.find((its) => its.carried.includes(last)) ?? moving[0] ?? all[0];
  const { layer, head, destination, source } = path;
  const name = `${layer}.${head}`;
  const row = { layer, head, destination, as: state.as };
  const used = headsOf(about);
  const others = everyHead(model)
    .filter((its) => !used.has(headName(its)))
    .map((its) => ({ ...its, destination: "", as: state.as }));
  /** A text of the losses if exactly this is switched off; otherwise how to switch it off. */
  const without = (off, what) => {
    const names = (list) => list.map(named).sort().join();
    if (names(state.off) !== names(off))
      return `To see the losses with only ${what} switched off, press back, then next.`;
    const found = current(state);
    if (!found?.fits) return "Losses are being measured …";
    const each = task.hops.map(
      (hop, n) => `${hop} ${number(found.clean.mean[n])} → ${number(found.changed.mean[n])}`,
    );
    return `Losses with ${what} switched off: ${each.join(", ")}; at chance ${[...new Set(found.chance.map(number))].join(", ")}.`;
  };
  const brought = path.carried.length ? path.carried.map(symbolName).join(" and ") : "its symbol";
  const more = new Set(moving.map(headName));
  more.delete(name);
  const layers = theory ? theory.layers : null;
  return [
    { question: "What is asked here?", patch: {}, answer: () => asks(state)?.text ?? "…" },
    {
      question: `Which head moves ${path.carried.map(symbolName).join(", ") || "the answer"}?`,
      patch: { head: name },
      answer: () =>
        `Head ${name} brings ${brought} from ${source} to ${destination}.` +
        (more.size ? ` Other heads that move something: ${[...more].join(", ")}.` : ""),
    },
    {
      question: "What breaks without it?",
      patch: { head: name, off: [row] },
      answer: () => without([row], `head ${name} at ${destination}`),
    },
    {
      question: "When did it appear?",
      patch: { head: name, step: nearestStep(state, path.emerged) },
      answer: () =>
        path.emerged === null
          ? "Its attention was never followed through a training."
          : `Its attention passed one half at step ${whole(path.emerged)}${learnedAt(about)}.`,
    },
    {
      question: "Is that all there is?",
      patch: { off: others },
      answer: () =>
        `${circuit.verdict}. ` +
        (others.length
          ? without(others, `${counted(others.length, "head")} outside the circuit`)
          : "Every head is part of the circuit."),
    },
    {
      question: "What does theory allow?",
      patch: { ghost: theory ? "theory" : "" },
      answer: () =>
        layers === null
          ? "Theory says nothing about this task."
          : `${counted(task.hops.length, "hop")} need at least ${counted(layers, "layer")}; this model has ` +
            `${model.layers}. Dotted lines are the earliest layers at which each place can be read.`,
    },
  ];
}

/** The first checkpoint at or after a step. */
function nearestStep({ steps }, step) {
  return step === null ? null : (steps.find((its) => its >= step) ?? null);
}

function learnedAt({ learned, task }) {
  const last = learned?.at(-1);
  return last === null || last === undefined ? "" : `; ${task.hops.at(-1)} was learned at step ${whole(last)}`;
}
