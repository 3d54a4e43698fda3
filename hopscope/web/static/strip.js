// The strip below all panes, which is always visible: the slider, and the current losses.

import { fill, h, mark, write } from "./dom.js";
import { ofHop } from "./colours.js";
import { EDGES, scale } from "./lines.js";
import { current } from "./losses.js";
import { points } from "./pointed.js";
import { slider } from "./slider.js";
import { spanOf, trained } from "./time.js";
import { number } from "./words.js";

const WORSE = 0.05; // a loss is red if it rises by more than this share of the loss at chance

export function stripOf(state) {
  const made = slider(state);
  const rail = h("div", { class: "rail" });
  const losses = h("div", { class: "now", role: "group", "aria-label": "Losses now" });
  const element = h("section", { class: "strip-below", "aria-label": "Checkpoint and losses" }, rail, losses);
  let width = 0;
  const rebuild = () => {
    const { about, steps } = state;
    element.hidden = !steps?.length || !(about?.task || about?.kind === "ngram");
    if (element.hidden) return;
    rail.hidden = !trained(state);
    width = rail.clientWidth;
    if (rail.hidden || width < 120) return;
    const { low, high, log } = spanOf(state);
    const toX = scale(low, high, EDGES.left, width - EDGES.right, log);
    fill(rail, made.build(toX, width));
    made.update();
  };
  new ResizeObserver(() => {
    if (rail.clientWidth !== width) rebuild();
  }).observe(rail);
  state.watch("about losses steps colour scale theme", rebuild);
  state.watch("step playing", () => {
    if (rail.childElementCount && state.steps?.length) made.update();
  });
  let rows = [];
  state.watch("about losses step off answer refused seed asking theme", () => {
    const hops = state.about?.task?.asked ?? [];
    losses.classList.toggle("many", hops.length > 3);
    if (rows.length !== hops.length || rows.some((its, n) => its.hop !== hops[n])) {
      rows = hops.map((hop, n) => rowOf(hop, n, state));
      fill(
        losses,
        rows.map((its) => its.element),
      );
    }
    const found = hops.length ? current(state) : null;
    losses.classList.toggle("old", !found?.fits);
    for (const [n, row] of rows.entries()) row.show(found, n, state.off.length > 0);
  });
  return element;
}

/** One hop: its name, the loss of the unchanged model, and the loss with heads switched off. */
function rowOf(hop, n, state) {
  const [before, now] = [h("span", { class: "before" }), h("b")];
  const element = h(
    "span",
    { class: "loss" },
    h("i", { style: { "--its": ofHop(n) } }),
    h("span", { class: "quiet" }, `hop ${hop}`),
    before,
    now,
  );
  points(element, state, { hop });
  return {
    hop,
    element,
    show(found, at, off) {
      const [clean, changed] = [found?.clean.mean[at], found?.changed.mean[at]];
      write(before, found && off ? `${number(clean)} →` : "");
      write(now, found ? number(changed) : "…");
      mark(element, { "data-worse": Boolean(found?.fits && off && changed - clean > WORSE * found.chance[at]) });
    },
  };
}
