// A benchmark of a language model: how often it is right, on what, and which heads look things up.

import { fill, h, s } from "./dom.js";
import { Pane } from "./pane.js";
import { number } from "./words.js";

const LEFT = 150, ROW = 28, SHOWN = 40;

export function llmPane(state) {
  const pane = new Pane(state, "llm", "Accuracy", { drawing: () => pane.svg, rows: () => numbers(state) });
  const chart = h("div", { class: "drawing" }), asked = h("div", { class: "asked" }), heads = h("div", { class: "asked" });
  pane.body.append(chart, heads, asked);
  pane.fits = (about) => about.kind === "llm";
  state.watch("about theme width", () => {
    if (!state.about || !pane.fits(state.about)) return;
    show(pane, state, chart);
    showHeads(state, heads);
    showQuestions(state, asked);
  });
  return pane;
}

/** Every kind of question: a dot with its 95 % interval, a tick where guessing stands. */
function show(pane, state, place) {
  const rows = state.about.accuracies ?? [], width = Math.min(860, Math.max(320, place.clientWidth)), right = width - 70, at = (share) => LEFT + share * (right - LEFT);
  const svg = pane.svg = s("svg", { class: "values accuracies", viewBox: `0 0 ${width} ${rows.length * ROW + 34}`, role: "img", "aria-label": `Accuracy: ${rows.map((its) => `${its.kind} ${number(its.accuracy)}`).join(", ")}` });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) svg.append(s("line", { class: "rule", x1: at(share), x2: at(share), y1: 4, y2: rows.length * ROW + 8 }), s("text", { x: at(share), y: rows.length * ROW + 24, "text-anchor": "middle" }, `${share * 100} %`));
  rows.forEach((its, n) => {
    const y = n * ROW + 20, [low, high] = its.interval ?? [its.low, its.high];
    svg.append(s("text", { class: "strong", x: 0, y: y + 4 }, its.kind), s("text", { x: LEFT - 12, y: y + 4, "text-anchor": "end" }, its.hops ? `${its.hops} hop${its.hops === 1 ? "" : "s"}` : ""),
      s("line", { class: "guess", x1: at(its.guessing), x2: at(its.guessing), y1: y - 9, y2: y + 9 }, s("title", {}, `guessing ${number(its.guessing)}`)),
      s("line", { class: "whisker", x1: at(low), x2: at(high), y1: y, y2: y }), s("circle", { class: "mean", cx: at(its.accuracy), cy: y, r: 5.5 }),
      s("text", { class: "value", x: right + 14, y: y + 4 }, number(its.accuracy)));
  });
  fill(place, svg);
  pane.hint("dot: accuracy with its 95 % interval · dotted tick: guessing");
  pane.told(state.about.command?.llm ?? state.about.command?.accuracies ?? `hopscope llm show ${state.about.name}`, state.about.python?.llm ?? "");
  pane.refreshNumbers();
}

function showQuestions(state, place) {
  const all = state.about.questions ?? [];
  if (!all.length) return fill(place);
  fill(place, h("h3", {}, "Questions ", h("small", {}, `${Math.min(SHOWN, all.length)} of ${state.about.asked ?? all.length}`)), h("ul", {}, all.slice(0, SHOWN).map((its) => {
    const right = its.right ?? its.answer === its.truth;
    return h("li", { class: right ? "right" : "wrong" }, h("pre", { tabindex: "0" }, its.text ?? its.question ?? its.prompt), h("p", {}, h("b", {}, String(its.answer ?? "–")), right ? " ✓" : ` ✗ true: ${its.truth}`, its.probability === undefined || its.probability === null ? "" : ` · probability ${number(its.probability)}`, h("small", {}, its.kind ? ` ${its.kind}` : "")));
  })));
}

function showHeads(state, place) {
  const all = state.about.heads ?? [];
  if (!all.length) return fill(place);
  fill(place, h("h3", {}, "Heads that look things up"), h("ol", { class: "routes" }, all.slice(0, SHOWN).map((its) => h("li", {}, h("b", {}, its.name ?? `${its.layer}.${its.head}`), ` ${its.told ?? its.route ?? ""} `, h("small", {}, its.attention === undefined ? "" : number(its.attention))))));
}

function numbers(state) {
  return { columns: ["questions", "hops", "accuracy", "low", "high", "guessing"],
    rows: (state.about.accuracies ?? []).map((its) => { const [low, high] = its.interval ?? [its.low, its.high]; return [its.kind, its.hops, its.accuracy, low, high, its.guessing]; }) };
}
