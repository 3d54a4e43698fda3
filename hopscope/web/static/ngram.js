// The n-gram experiment at every epoch: the selector's set of heads, the lags that heads copy, the
// sharpness of the last layer; and the model's answer to a sequence, next to the induction head's.

import { ofNgram } from "./commands.js";
import { box, fill, h, label, labelledSvg, region, s } from "./dom.js";
import { ofHop } from "./colours.js";
import { Pane } from "./pane.js";
import { at, epochs, isParents, model, parents, ready, setName } from "./parameters.js";
import { answers, showSequence } from "./sequence.js";
import { number, whole } from "./words.js";

export function ngramPanes(state) {
  const values = new Pane(state, "ngram", "Parameters", {
    drawing: () => ready(state) && values.svg,
    rows: () => (ready(state) ? numbers(state) : []),
    command: () => ofNgram(state.about, "course"),
    fits: (about) => Boolean(about.ngram),
  });
  const sequence = new Pane(state, "sequence", "Sequence", {
    drawing: () => ready(state) && sequence.svg,
    rows: () => (ready(state) ? answers(state) : []),
    command: () => ofNgram(state.about, "state"),
    fits: values.fits,
  });
  // Made once, so that redrawing keeps the scroll position and the focus.
  const wide = region("wide", "Parameters of the model");
  const place = h("div", { class: "parameters" }, wide);
  const chips = h("div", { class: "letters" });
  const bars = h("div", { class: "predicted" });
  values.body.append(place);
  sequence.body.append(chips, bars);
  values.draws("values step theme seed", () => ready(state) && showValues(values, state, wide));
  sequence.draws("values step tokens theme seed", () => {
    if (ready(state)) showSequence(sequence, state, chips, bars);
  });
  return [sequence, values];
}

/** Curves over time: the share of the parents' set, the lags of its heads, and a. */
export function curves(state) {
  const xs = epochs(state);
  const all = xs.map((_, n) => at(state, n));
  const groups = model(state).sets;
  const most = Math.max(...all.map((its) => its.a), 1e-9);
  const line = (name, hop, ys) => ({ name, colour: ofHop(hop), xs, ys });
  const shares = groups.flatMap((set, n) =>
    isParents(state, set) ? [line(`share of ${setName(set)}`, 0, all.map((its) => its.shares[n]))] : [],
  );
  const lags = parents(state)
    .filter((lag) => lag <= all[0].w.length)
    .map((lag, n) => line(`head ${lag} → lag ${lag}`, 1 + n, all.map((its) => its.copied[lag - 1][lag - 1])));
  return [...shares, ...lags, line(`a / ${number(most)}`, 3, all.map((its) => its.a / most))];
}

function showValues(pane, state, place) {
  const now = at(state, state.at);
  const groups = model(state).sets;
  const { shares: part, copied: heads } = now;
  const lags = heads[0].length;
  const bar = 132;
  const row = 22;
  const below = 62 + 28 * heads.length;
  const height = Math.max(34 + row * groups.length, below + 34);
  const told = groups.map((set, n) => `${setName(set)} ${number(part[n])}`).join(", ");
  const svg = labelledSvg("values", Math.max(530, 380 + 44 * lags), height, `Selector: ${told}; a ${number(now.a)}`);
  svg.append(label(0, 12, "selector: share of each set", { class: "title" }));
  groups.forEach((set, n) => {
    const y = 26 + n * row;
    const [strong, fill] = isParents(state, set) ? ["strong", ofHop(0)] : ["", "var(--known)"];
    svg.append(
      label(0, y + 11, setName(set), { class: strong }),
      box(52, y, bar, 14, { class: "under", rx: 4 }),
      box(52, y, bar * part[n], 14, { rx: 4, style: { fill } }),
      label(52 + bar + 8, y + 11, number(part[n]), { class: "value" }),
    );
  });
  svg.append(label(290, 12, "copiers: what each head looks at", { class: "title" }));
  const cell = 44;
  for (let lag = 0; lag < lags; lag++)
    svg.append(label(352 + lag * cell, 30, `lag ${lag + 1}`, { "text-anchor": "middle" }));
  heads.forEach((look, head) => {
    const y = 38 + head * 28;
    svg.append(label(290, y + 15, `head ${head + 1}`));
    look.forEach((share, lag) => {
      const at = { cx: 352 + lag * cell, cy: y + 11 };
      const parent = parents(state).indexOf(lag + 1);
      const style = { fill: ofHop(parent < 0 ? 7 : 1 + parent) };
      const filled = s("circle", { ...at, r: 11.5 * Math.sqrt(share), style }, s("title", {}, number(share)));
      svg.append(s("circle", { ...at, r: 11.5, class: "ring" }), filled);
    });
  });
  svg.append(
    label(290, below, "classifier: how sharp", { class: "title" }),
    label(290, below + 26, `a = ${number(now.a)}`, { class: "large-value" }),
  );
  pane.svg = svg;
  fill(place, svg);
  pane.hint(`epoch ${whole(state.steps[state.at])} · parents at lags ${parents(state).join(", ")} (bold)`);
}

function numbers(state) {
  const groups = model(state).sets;
  return epochs(state).map((epoch, n) => {
    const { c, w, a } = at(state, n);
    const sets = groups.map((set, k) => [`c${setName(set)}`, c[k]]);
    const lags = w.flatMap((row, head) => row.map((its, lag) => [`w${head + 1}[${lag + 1}]`, its]));
    return { epoch, ...Object.fromEntries([...sets, ...lags]), a };
  });
}
