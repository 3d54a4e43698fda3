// Explanations for visitors: the task with the symbols of this example, and the content of each
// pane.

import { fill, h } from "./dom.js";
import { ofSymbol } from "./colours.js";
import { counted, symbolName } from "./words.js";

const FACTS = {
  retrieval: "Two tokens side by side are a fact: the key leads to the value.",
  induction: "Two tokens side by side are a fact: the first leads to the second.",
  conditional: "A fact is one or two keys, and the value that they lead to.",
  khop: "Every letter leads to the letter that followed it when it last stood before.",
  mqar: "First stand pairs of a key and its value; then keys are asked for.",
};

/** Help texts: what each pane shows, and what can be done there. */
export const MEANING = {
  example:
    "One input of the model. Each box is a token; below it stands its role: k0 and v0 are the key and " +
    "the value of the first fact, q is a question. A colour is a chain of facts that belong together. " +
    "Arcs show what the chosen head attends to. Double-click a token to change it.",
  circuit:
    "Layers go upward, roles stand side by side. An arrow is a head (layer.head) that brings something " +
    "from one role to another: the wider, the more the circuit loses without it, " +
    "if its heads compute their attention (dashed: it routes later heads). Squares say which symbols can be " +
    "read at a place by a linear map: the fuller, the more. Click an arrow or a circle to switch it off: " +
    "then squares show the changed model, by the maps that were fitted on the unchanged one. ± is a 95 % " +
    "interval over examples; 100 % is the gap between the model and the model with everything ablated. In a run " +
    "with several checkpoints the maps are fitted on 256 examples; `hopscope probe` takes 1,024.",
  heads:
    "The attention of every head, averaged over 256 fresh examples: rows are roles that attend, columns are roles " +
    "that they attend to. A dot marks the heads of the circuit. Click a map to look at its head.",
  losses:
    "The loss of each hop; dots mark the loss at chance. Above stands on which examples: the validation " +
    "examples of its training, or fresh ones once something is off, so the same model differs a little. Then " +
    "a notch shows the model with nothing off, and ± the 95 % interval over examples. Below: what it " +
    "answers to the example above.",
  time:
    "The losses of each hop on the validation examples, and the attention along each arrow, averaged over " +
    "256 fresh examples, at every checkpoint of the training. `hopscope emergence` takes 32 others by default: " +
    "its losses and attention differ a little. The steps at which arrows emerged are its own, so a curve " +
    "may pass one half at another step. Drag to go to another checkpoint.",
  fleet: "The same training from other seeds. Click a seed to look at it.",
};

/** The line above the tokens: the question, and the token of each symbol. */
export function taskLine(state) {
  const line = h("p", { class: "task" });
  state.watch("about example theme", () => {
    const asked = asks(state);
    fill(line, asked ? [asked.text, ...asked.symbols.map(chip)] : "");
  });
  return line;
}

/** The task as a sentence with this example's first question; null if there is none. */
export function asks(state) {
  const { about, example } = state;
  const question = example?.json.answers[0];
  if (!about?.task || !question || (example.tokens && about.task.carried)) return null;
  const { task } = about;
  const start = example.json.tokens[question.position];
  const truths = question.hops.map(({ truth }) => truth ?? "nothing");
  if (task.given) {
    const [truth] = truths;
    return { text: question.hops[0].truth === null ? "" : `After ${start.text} (${start.role}) the model is to answer ${truth}.`, symbols: [] };
  }
  const linear = (task.graph ?? []).every((fact, n) => fact === `${task.symbols[n]}->${task.symbols[n + 1]}`);
  const from = start?.text ?? "?";
  const hops = linear ? truths.map((its, n) => `${its} after ${counted(n + 1, "hop")}`) : [truths.join(", ")];
  const text = `${FACTS[task.kind] ?? ""} Asked ${from}, the model is to answer ${hops.join(", ")}.`;
  const names = task.symbols.length === truths.length + 1 ? task.symbols : [];
  const symbols = names.map((name, n) => ({
    name,
    text: n ? truths[n - 1] : from,
    colour: ofSymbol(task.symbols, name),
  }));
  return { text, symbols };
}

function chip({ name, text, colour }) {
  return h("span", { class: "symbol" }, h("i", { style: { "--its": colour } }), `${symbolName(name)} = ${text}`);
}
