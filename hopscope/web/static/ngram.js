// The n-gram experiment at every epoch: the selector's set of heads, the lags that heads copy, the
// sharpness of the last layer; and the model's answer to a sequence, next to the induction head's.

import { ofNgram } from "./commands.js";
import { fill, h, labelledSvg, region, s } from "./dom.js";
import { ofHop } from "./colours.js";
import { Pane } from "./pane.js";
import { at, epochs, isParents, model, parents, ready, setName } from "./parameters.js";
import { answers, showSequence } from "./sequence.js";
import { number, whole } from "./words.js";

const NONE = { columns: [], rows: [] };

export function ngramPanes(state) {
  const values = new Pane(state, "ngram", "Parameters", {
    drawing: () => ready(state) && values.svg,
    rows: () => (ready(state) ? numbers(state) : NONE),
    command: () => ofNgram(state.about, "course"),
    fits: (about) => Boolean(about.ngram),
  });
  const sequence = new Pane(state, "sequence", "Sequence", {
    drawing: () => ready(state) && sequence.svg,
    rows: () => (ready(state) ? answers(state) : NONE),
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
  const chosen = groups.findIndex((set) => isParents(state, set));
  return [
    ...(chosen < 0
      ? []
      : [
          {
            name: `share of ${setName(groups[chosen])}`,
            colour: ofHop(0),
            xs,
            ys: all.map((its) => its.shares[chosen]),
          },
        ]),
    ...parents(state)
      .filter((lag) => lag <= all[0].w.length)
      .map((lag, n) => ({
        name: `head ${lag} → lag ${lag}`,
        colour: ofHop(1 + n),
        xs,
        ys: all.map((its) => its.copied[lag - 1][lag - 1]),
      })),
    { name: `a / ${number(most)}`, colour: ofHop(3), xs, ys: all.map((its) => its.a / most) },
  ];
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
  svg.append(s("text", { class: "title", x: 0, y: 12 }, "selector: share of each set"));
  groups.forEach((set, n) => {
    const y = 26 + n * row;
    svg.append(
      s("text", { x: 0, y: y + 11, class: isParents(state, set) ? "strong" : "" }, setName(set)),
      s("rect", { class: "under", x: 52, y, width: bar, height: 14, rx: 4 }),
      s("rect", {
        x: 52,
        y,
        width: bar * part[n],
        height: 14,
        rx: 4,
        style: { fill: isParents(state, set) ? ofHop(0) : "var(--known)" },
      }),
      s("text", { class: "value", x: 52 + bar + 8, y: y + 11 }, number(part[n])),
    );
  });
  svg.append(s("text", { class: "title", x: 290, y: 12 }, "copiers: what each head looks at"));
  const cell = 44;
  for (let lag = 0; lag < lags; lag++)
    svg.append(s("text", { x: 352 + lag * cell, y: 30, "text-anchor": "middle" }, `lag ${lag + 1}`));
  heads.forEach((look, head) => {
    const y = 38 + head * 28;
    svg.append(s("text", { x: 290, y: y + 15 }, `head ${head + 1}`));
    look.forEach((share, lag) =>
      svg.append(
        s("circle", { cx: 352 + lag * cell, cy: y + 11, r: 11.5, class: "ring" }),
        s(
          "circle",
          {
            cx: 352 + lag * cell,
            cy: y + 11,
            r: 11.5 * Math.sqrt(share),
            style: {
              fill: ofHop(parents(state).includes(lag + 1) ? 1 + parents(state).indexOf(lag + 1) : 7),
            },
          },
          s("title", {}, number(share)),
        ),
      ),
    );
  });
  svg.append(
    s("text", { class: "title", x: 290, y: below }, "classifier: how sharp"),
    s("text", { class: "large-value", x: 290, y: below + 26 }, `a = ${number(now.a)}`),
  );
  pane.svg = svg;
  fill(place, svg);
  pane.hint(`epoch ${whole(state.steps[state.at])} · parents at lags ${parents(state).join(", ")} (bold)`);
}

function numbers(state) {
  const groups = model(state).sets;
  const all = epochs(state);
  return {
    columns: [
      "epoch",
      ...groups.map((set) => `c${setName(set)}`),
      ...at(state, 0).w.flatMap((row, head) => row.map((_, lag) => `w${head + 1}[${lag + 1}]`)),
      "a",
    ],
    rows: all.map((epoch, n) => {
      const its = at(state, n);
      return [epoch, ...its.c, ...its.w.flat(), its.a];
    }),
  };
}
