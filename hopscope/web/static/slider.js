// The slider over all checkpoints: a notch for each, a mark for each path and hop, and a play
// button.

import { able, fill, h, icon, label, mark, rule, s } from "./dom.js";
import { ofHop } from "./colours.js";
import { events } from "./events.js";
import { underPointer } from "./lines.js";
import { nearest } from "./state.js";
import { pathColour } from "./strokes.js";
import { whole } from "./words.js";

const LETTER = 6;
const GAP = 3;
const ROOM = 92;

/** Play or pause; does nothing with fewer than two checkpoints. */
export function playOrPause(state) {
  if (state.steps?.length > 1 && !state.leaving) state.set({ playing: !state.playing }, "none");
}

/** The slider: a notch for each checkpoint, a mark for each path and hop. */
export function slider(state) {
  // Outside of the SVG, so that moving them redraws nothing.
  const thumb = h("i", { class: "thumb" });
  const gone = h("i", { class: "gone" });
  const play = icon("▶", "Play through the training", () => playOrPause(state), {
    class: "icon play",
    title: "Play (space)",
  });
  const bar = h("div", {
    class: "slider",
    role: "slider",
    tabindex: "0",
    "aria-label": "Checkpoint",
    "aria-valuemin": "0",
  });
  bar.addEventListener("keydown", (event) => {
    if (!state.steps) return; // hidden in the next frame
    const far = Math.max(2, Math.round(state.steps.length / 10));
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: far, PageDown: -far }[event.key];
    if (!by) return;
    event.preventDefault();
    state.moveTo(state.at + by);
  });
  let made = null;
  let timer = 0;
  drag(bar, state, (event) => underPointer(made, event));
  // Immediately, because the next step would overwrite the history entry that the user went to.
  addEventListener("popstate", () => {
    clearInterval(timer);
    state.set({ playing: false }, "none");
  });
  state.watch("playing", () => {
    clearInterval(timer);
    play.textContent = state.playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", state.playing ? "Pause" : "Play through the training");
    if (!state.playing) return;
    if (state.at >= state.steps.length - 1) state.set({ step: state.steps[0] }, "replace");
    timer = setInterval(
      () => {
        if (!state.playing || state.at >= state.steps.length - 1) return state.set({ playing: false }, "none");
        state.set({ step: state.steps[state.at + 1] }, "replace");
      },
      Math.max(40, Math.min(180, 6000 / state.steps.length)),
    );
  });
  return {
    build(toX, width) {
      const { steps, about } = state;
      const svg = s("svg", { viewBox: `0 0 ${width} 52`, width, height: 52, "aria-hidden": "true" });
      const first = toX(steps[0]);
      const end = toX(steps.at(-1));
      gone.style.left = `${first}px`;
      gone.style.width = `${end - first}px`;
      svg.append(rule(first, 22, end, 22, { class: "track" }));
      if (steps.length < 400)
        for (const step of steps) svg.append(rule(toX(step), 18, toX(step), 26, { class: "notch" }));
      const marked = (name, { text, step }, ...drawn) =>
        svg.append(s("g", { class: name }, s("title", {}, `${text} at step ${whole(step)}`), drawn));
      const ends = [-99, -99]; // where the last name ends, on each of two lines
      for (const its of events(about).filter((each) => each.path)) {
        const x = toX(its.step);
        const half = (LETTER * its.name.length) / 2;
        const level = ends.findIndex((end) => end + GAP < x - half);
        if (level >= 0) ends[level] = x + half;
        const arrow = s("path", { d: `M${x} 28l-3.4 5h6.8Z`, style: { fill: pathColour(its.path, state) } });
        // Without room for the name it is in the tooltip alone.
        const name = level < 0 ? null : label(x, 41 + level * 9.5, its.name, { "text-anchor": "middle" });
        marked("event", its, arrow, name);
      }
      const others = events(about).filter((each) => !each.path);
      const places = others.map((each) => toX(each.step));
      let taken = -99;
      for (const [n, its] of others.entries()) {
        const x = places[n];
        const near =
          x - places[n - 1] < ROOM || (places[n + 1] ?? Infinity) - x < ROOM || x + ROOM > width;
        const from = Math.max(x + 4, taken + GAP);
        taken = from + LETTER * (near ? 1 : 0);
        const line = rule(x, 4, x, 16, { style: { stroke: ofHop(its.hop) } });
        marked("event hop", its, line, label(from, 11, near ? its.name : its.long));
      }
      made = { svg, toX, first, end };
      bar.setAttribute("aria-valuemax", String(steps.length - 1));
      fill(bar, svg, gone, thumb);
      return [play, bar];
    },
    update() {
      const { steps, at } = state;
      const x = made.toX(steps[at]);
      thumb.style.transform = `translateX(${x}px)`;
      gone.style.transform = `scaleX(${(x - made.first) / (made.end - made.first || 1)})`;
      mark(bar, { "aria-valuenow": at, "aria-valuetext": `step ${whole(steps[at])}` });
      able(play, steps.length > 1);
    },
  };
}

/** While the pointer is pressed, go to the checkpoint nearest to the `value` under it. */
export function drag(element, state, value) {
  const go = (event) =>
    state.steps && state.set({ step: state.steps[nearest(state.steps, value(event))], playing: false }, "replace");
  element.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    element.setPointerCapture(event.pointerId);
    go(event);
  });
  element.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) go(event);
  });
}
