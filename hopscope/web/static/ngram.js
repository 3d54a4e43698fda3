// The n-gram experiment: which set the selector chose, what each head copies, how sharp the last
// layer is, at every epoch; and what the model says to a sequence, beside the induction head.

import { predict, inductionHead, sets, shares, softmax } from "./copier.js";
import { button, fill, h, s } from "./dom.js";
import { ofChain, ofHop } from "./colours.js";
import { Pane } from "./pane.js";
import { number, whole } from "./words.js";

const LETTERS = "abcdefghijklmnopqrstuvwxyz", MOST = 400;

export function ngramPanes(state) {
  const values = new Pane(state, "ngram", "Parameters", { drawing: () => values.svg, rows: () => numbers(state) });
  const sequence = new Pane(state, "sequence", "Sequence", { drawing: () => sequence.svg, rows: () => answers(state) });
  for (const pane of [values, sequence]) pane.fits = (about) => about.kind === "ngram";
  const place = h("div", { class: "parameters" }), chips = h("div", { class: "letters" }), bars = h("div", { class: "predicted" });
  values.body.append(place);
  sequence.body.append(chips, bars);
  state.watch("values", () => { if (state.values && state.about.kind === "ngram") state.set({ curves: curves(state), steps: epochs(state) }, "none"); });
  state.watch("values step theme seed", () => { if (ready(state)) showValues(values, state, place); });
  state.watch("values step tokens theme seed", () => { if (ready(state)) showSequence(sequence, state, chips, bars); });
  return [sequence, values];
}

const ready = (state) => state.about?.kind === "ngram" && state.values && state.steps?.length;
const epochs = (state) => [...(state.values.epochs ?? state.values.steps).data];
const model = (state) => state.about.ngram;
const parents = (state) => state.about.ngram.parents;
const setName = (set) => `{${set.map((head) => head + 1).join(",")}}`;

/** Parameters at one recorded epoch. */
function at(state, n) {
  const { c, w, a } = state.values, sizes = [c.shape.at(-1), w.shape.at(-2), w.shape.at(-1)];
  const lags = (head) => [...w.data.slice((n * sizes[1] + head) * sizes[2], (n * sizes[1] + head + 1) * sizes[2])];
  return { c: [...c.data.slice(n * sizes[0], (n + 1) * sizes[0])], w: Array.from({ length: sizes[1] }, (_, head) => lags(head)), a: a.data[n] };
}

/** The head that starts at a lag: the set of the parents' heads is what the theory says wins. */
function isParents(state, set) {
  return set.map((head) => head + 1).join() === [...parents(state)].sort((a, b) => a - b).join();
}

/** What is drawn over time: the parents' set, what its heads copy, how sharp the last layer is. */
function curves(state) {
  const xs = epochs(state), all = xs.map((_, n) => at(state, n)), groups = sets(model(state)), most = Math.max(...all.map((its) => its.a), 1e-9);
  const chosen = groups.findIndex((set) => isParents(state, set));
  return [...(chosen < 0 ? [] : [{ name: `share of ${setName(groups[chosen])}`, colour: ofHop(0), xs, ys: all.map((its) => shares(its.c)[chosen]) }]),
    ...parents(state).filter((lag) => lag <= all[0].w.length).map((lag, n) => ({ name: `head ${lag} → lag ${lag}`, colour: ofHop(1 + n), xs, ys: all.map((its) => softmax(its.w[lag - 1])[lag - 1]) })),
    { name: `a / ${number(most)}`, colour: ofHop(3), xs, ys: all.map((its) => its.a / most) }];
}

function showValues(pane, state, place) {
  const now = at(state, state.at), groups = sets(model(state)), part = shares(now.c), heads = now.w.map(softmax);
  const lags = heads[0].length, bar = 132, row = 22, height = 34 + row * Math.max(groups.length, heads.length * 1.4, 4);
  const svg = s("svg", { class: "values", viewBox: `0 0 720 ${height}`, role: "img", "aria-label": `Selector: ${groups.map((set, n) => `${setName(set)} ${number(part[n])}`).join(", ")}; a ${number(now.a)}` });
  svg.append(s("text", { class: "title", x: 0, y: 12 }, "selector: share of each set"));
  groups.forEach((set, n) => {
    const y = 26 + n * row;
    svg.append(s("text", { x: 0, y: y + 11, class: isParents(state, set) ? "strong" : "" }, setName(set)), s("rect", { class: "under", x: 52, y, width: bar, height: 14, rx: 4 }),
      s("rect", { x: 52, y, width: bar * part[n], height: 14, rx: 4, style: { fill: isParents(state, set) ? ofHop(0) : "var(--known)" } }), s("text", { class: "value", x: 52 + bar + 8, y: y + 11 }, number(part[n])));
  });
  svg.append(s("text", { class: "title", x: 290, y: 12 }, "copiers: what each head looks at"));
  const cell = 44;
  for (let lag = 0; lag < lags; lag++) svg.append(s("text", { x: 352 + lag * cell, y: 30, "text-anchor": "middle" }, `lag ${lag + 1}`));
  heads.forEach((look, head) => {
    const y = 38 + head * 28;
    svg.append(s("text", { x: 290, y: y + 15 }, `head ${head + 1}`));
    look.forEach((share, lag) => svg.append(s("circle", { cx: 352 + lag * cell, cy: y + 11, r: 11.5, class: "ring" }), s("circle", { cx: 352 + lag * cell, cy: y + 11, r: 11.5 * Math.sqrt(share), style: { fill: ofHop(parents(state).includes(lag + 1) ? 1 + parents(state).indexOf(lag + 1) : 7) } }, s("title", {}, number(share)))));
  });
  svg.append(s("text", { class: "title", x: 540, y: 12 }, "classifier: how sharp"), s("text", { class: "large-value", x: 540, y: 56 }, `a = ${number(now.a)}`));
  pane.svg = svg;
  fill(place, svg);
  pane.hint(`epoch ${whole(state.steps[state.at])} · parents at lags ${parents(state).join(", ")} (bold)`);
  const run = state.about.name;
  pane.told(state.about.command?.ngram ?? `hopscope markov show ${run}`, state.about.python?.ngram ?? `import hopscope\nhopscope.load("${run}").course(${state.seed ?? 0})`);
  pane.refreshNumbers();
}

/** The sequence that is looked at, as numbers: what was typed, or one with some order in it. */
function tokens(state) {
  const { alphabet } = state.about.ngram, window = model(state).window;
  const typed = (state.tokens ?? []).map((its) => LETTERS.indexOf(its)).filter((its) => its >= 0 && its < alphabet);
  if (typed.length > window) return typed.slice(-MOST);
  const made = [0, 1 % alphabet, 1 % alphabet];
  for (let seed = 7; made.length < 36;) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    made.push(seed % 7 === 0 ? seed % alphabet : (made.at(-1) + made.at(-2) + 1) % alphabet);
  }
  return made;
}

function both(state) {
  const { alphabet } = state.about.ngram, seen = tokens(state), plain = (model(state).first ?? "copies") === "copies";
  return { alphabet, seen, plain, said: plain ? predict(seen, alphabet, at(state, state.at), model(state)) : null, head: inductionHead(seen, alphabet, model(state).window, parents(state)) };
}

function showSequence(pane, state, chips, place) {
  const { alphabet, seen, plain, said, head } = both(state), most = Math.max(...(said ?? head).attention, 1e-9);
  const typed = pane.typed ??= h("input", { type: "text", class: "typed", spellcheck: "false", autocomplete: "off", "aria-label": `A sequence of the letters ${LETTERS.slice(0, alphabet)}`, on: { input: (event) => state.set({ tokens: [...event.target.value.toLowerCase()].filter((its) => LETTERS.indexOf(its) >= 0 && LETTERS.indexOf(its) < alphabet) }, "replace") } });
  if (document.activeElement !== typed) typed.value = seen.map((its) => LETTERS[its]).join("");
  fill(pane.tools, typed, state.tokens ? button("as it was", () => state.set({ tokens: null }), { class: "plain" }) : null);
  const lit = new Set(parents(state).map((lag) => seen.length - lag));
  fill(chips, seen.map((its, n) => h("span", { class: lit.has(n) ? "letter parent" : "letter", title: `position ${n}: attention ${number((said ?? head).attention[n])}`, style: { "--chain": ofChain(its), "--share": ((said ?? head).attention[n] / most).toFixed(3) } }, h("i", {}), LETTERS[its])), h("span", { class: "letter asked" }, h("i", {}), "?"));
  const svg = s("svg", { class: "values", viewBox: `0 0 420 ${30 + alphabet * 30}`, role: "img", "aria-label": `Next symbol: ${Array.from({ length: alphabet }, (_, n) => `${LETTERS[n]} ${said ? number(said.answer[n]) : ""} (induction head ${number(head.answer[n])})`).join(", ")}` });
  svg.append(s("text", { class: "title", x: 0, y: 12 }, plain ? "next symbol: the model (filled), the induction head (outline)" : "next symbol by the induction head"));
  for (let n = 0; n < alphabet; n++) {
    const y = 24 + n * 30;
    svg.append(s("text", { class: "strong", x: 2, y: y + 15 }, LETTERS[n]), s("rect", { class: "under", x: 24, y, width: 300, height: 20, rx: 5 }));
    if (said) svg.append(s("rect", { x: 24, y: y + 3, width: 300 * said.answer[n], height: 14, rx: 4, style: { fill: ofChain(n) } }), s("text", { class: "value", x: 334, y: y + 15 }, number(said.answer[n])));
    svg.append(s("rect", { class: "outline", x: 24, y, width: Math.max(1, 300 * head.answer[n]), height: 20, rx: 5 }), s("text", { x: 420, y: y + 15, "text-anchor": "end" }, number(head.answer[n])));
  }
  pane.svg = svg;
  fill(place, svg);
  pane.hint(`bars over letters: attention of the last layer · ${head.matches} earlier place${head.matches === 1 ? "" : "s"} with the same parents`);
  pane.told(state.about.command?.example ?? "", state.about.python?.example ?? "");
  pane.refreshNumbers();
}

function numbers(state) {
  const groups = sets(model(state)), all = epochs(state);
  return { columns: ["epoch", ...groups.map((set) => `c${setName(set)}`), ...at(state, 0).w.flatMap((row, head) => row.map((_, lag) => `w${head + 1}[${lag + 1}]`)), "a"],
    rows: all.map((epoch, n) => { const its = at(state, n); return [epoch, ...its.c, ...its.w.flat(), its.a]; }) };
}

function answers(state) {
  const { alphabet, seen, said, head } = both(state);
  return { columns: ["symbol", "model", "induction head"], rows: [...Array.from({ length: alphabet }, (_, n) => [LETTERS[n], said?.answer[n] ?? "", head.answer[n]]), ["sequence", seen.map((its) => LETTERS[its]).join(""), ""]] };
}
