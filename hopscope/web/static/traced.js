// The circuit of a language model: how far answers follow each role and layer, the heads of the
// circuit, and how far answers follow when exactly these are patched.

import { ofFindings } from "./commands.js";
import { cells, fill, h, region, select, table } from "./dom.js";
import { Pane } from "./pane.js";
import { number } from "./words.js";

export function tracedPane(state) {
  const pane = new Pane(state, "mechanism", "Mechanism", {
    rows: () => numbers(state),
    command: () => ofFindings(state.about),
    fits: (about) => about.kind === "lm-circuit",
  });
  pane.draws("about findings asked", () => show(pane, state));
  return pane;
}

function show(pane, state) {
  const { model, questions } = state.about.traced;
  const { findings } = state;
  if (!findings) {
    pane.hint(`${model}, ${questions}`);
    fill(pane.tools);
    const there = state.about.arrays.length > 0;
    const told = there ? "Being read …" : "Not all is measured yet: this page shows it when it is.";
    fill(pane.body, h("p", { class: "quiet" }, told));
    return;
  }
  const names = Object.keys(findings.follows);
  const { right, of, chance } = findings.answered;
  const name = names.includes(state.asked) ? state.asked : names[0];
  pane.hint(`${model}, ${questions} · ${right} of ${of} answered right (chance ${number(chance)})`);
  fill(
    pane.tools,
    select(
      "Which symbol is exchanged",
      names.map((its) => [its, `exchange ${its}`]),
      name,
      (its) => state.set({ asked: its }),
    ),
  );
  fill(
    pane.body,
    h(
      "ul",
      { class: "verdict" },
      findings.verdict.map((line) => h("li", {}, line)),
    ),
    h(
      "p",
      { class: "quiet" },
      `How far the answer follows when ${name} is exchanged before each layer; 1: all the way`,
    ),
    region("wide", "By role and layer", byLayer(findings, name)),
    h("h3", {}, "The circuit"),
    h(
      "ul",
      {},
      findings.circuit.map((part) => h("li", {}, h("b", {}, part.name), ` ${part.told}`)),
    ),
    proofs("On fresh questions", findings.proof),
    proofs("On another formulation", findings.elsewhere),
  );
}

/** A table of how far answers follow the patched stream: a row for each role, a column for each
 *  layer. */
function byLayer({ roles, layers, follows }, name) {
  const cell = ({ mean, low, high }) =>
    h(
      "td",
      {
        style: { "--share": String(Math.min(1, Math.max(0, mean))) },
        title: `95 %: ${number(low)} … ${number(high)}`,
      },
      mean < 0.005 ? "·" : mean.toFixed(2),
    );
  const made = table(["role", ...layers], roles.map((role, n) => [role, ...follows[name][n].map(cell)]));
  made.className = "shares";
  return made;
}

function proofs(title, all) {
  if (!all.length) return null;
  const share = (its) => (its ? `${number(its.mean)} (${number(its.low)} … ${number(its.high)})` : "–");
  const rows = all.map(({ exchange, circuit, random, more, rest, everything }) => ({
    exchange,
    "the circuit's rows": share(circuit),
    "as many random rows": share(random),
    "more than random": share(more),
    "all other rows": share(rest),
    "all rows": share(everything),
  }));
  return [
    h("h3", {}, title, " ", h("small", {}, `${all[0].questions} questions`)),
    h("p", { class: "quiet" }, "How far the answer follows if these rows are the donor's; 1: all the way (95 %)"),
    region("wide", title, table(...cells(rows))),
  ];
}

function numbers(state) {
  const { follows = {}, roles, layers } = state.findings ?? {};
  return Object.entries(follows).flatMap(([exchange, byRole]) =>
    byRole.flatMap((by, n) =>
      by.map(({ mean, low, high }, at) => {
        const [role, layer] = [roles[n], layers[at]];
        return { exchange, role, layer, follows: mean, low, high };
      }),
    ),
  );
}
