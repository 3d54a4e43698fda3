// The training: losses of every hop, and attention along every path.

import { ofTraining } from "./commands.js";
import { choice, fill, h, s, write, zoom } from "./dom.js";
import { ofHop } from "./colours.js";
import { chart, legend, nearest, underPointer } from "./lines.js";
import { curves } from "./ngram.js";
import { Pane } from "./pane.js";
import { arrows } from "./paths.js";
import { pathLit } from "./pointed.js";
import { drag } from "./slider.js";
import { pathColour } from "./strokes.js";
import { counted, digits, number, shortRole, waiting, whole } from "./words.js";

const SIDE = 190;
const WINDOW = 25; // training losses are means of so many
const CUT = 1.35; // the axis of losses ends at this multiple of chance, or of a higher lowest loss

export function timePane(state) {
  const pane = new Pane(state, "time", "Training", {
    drawing: () => pane.charts && together(pane, state.steps[state.at]),
    rows: () => numbers(state),
    command: () => ofTraining(state),
    fits: (about) => Boolean(about.task || about.ngram),
  });
  const place = h("div", { class: "curves" });
  pane.body.append(place);
  const rebuild = () => {
    pane.charts = null;
    build(pane, state, place);
    if (pane.charts) update(pane, state);
  };
  pane.fills(place, rebuild);
  pane.draws("about losses maps values steps overTime colour scale theme seed pane", rebuild);
  pane.draws("step playing", () => pane.charts && update(pane, state));
  pane.watch("point", () => pane.charts && light(pane, state));
  pane.watch("about steps scale", () => tools(pane, state));
  return pane;
}

function tools(pane, state) {
  const { steps } = state;
  const scales = choice("Axis of steps", ["linear", "log"], scaleOf(state), (scale) => state.set({ scale }));
  fill(pane.tools, steps.length > 1 ? scales : null);
}

/** Was this model trained? (True if its losses are not fetched yet.) */
export function trained({ about, steps, losses }) {
  if (steps.length > 1 || !about.arrays.includes("losses")) return steps.length > 1;
  return !losses || losses.trainSteps.length > 0 || losses.validationSteps.length > 0;
}

/** The range of steps of the charts and the slider. */
export function spanOf({ about, steps, losses, scale }) {
  const planned = about.state === "complete" ? 0 : (about.steps ?? 0);
  const last = Math.max(steps.at(-1), losses?.trainSteps.at(-1) ?? 0, planned, 1);
  return { low: 0, high: last, log: scaleOf({ about, scale }) === "log" };
}

/** The scale of the axis of steps; log for n-gram trainings, whose stages have very different
 *  lengths. */
const scaleOf = ({ about, scale }) => scale || (about.kind === "ngram" ? "log" : "linear");

function build(pane, state, place) {
  const { about, losses, maps, steps } = state;
  if (!steps.length || !trained(state)) {
    pane.hint("");
    return fill(
      place,
      h(
        "p",
        { class: "quiet" },
        steps.length
          ? about.named
            ? "This model comes from elsewhere in one state of its weights: there is no training to go through."
            : "Its weights were written by hand: there was no training."
          : waiting(state, "Losses are on their way"),
      ),
    );
  }
  const { room } = pane;
  const side = room > 640 ? SIDE : 0;
  const width = Math.max(280, room - side);
  const hops = about.task?.hops ?? ["loss"];
  const x = spanOf(state);
  const parameters = state.values ? curves(state) : null;
  const two = steps.length > 1 && ((about.task && arrows(about).length > 0 && maps) || parameters);
  const chances = [...new Set(about.task?.chance ?? (about.chance ? [about.chance] : []))].filter((its) => its > 0);
  const chance = Math.max(0, ...chances);
  const high = innerHeight / zoom();
  const tall = state.pane === "time"
    ? Math.max(150, (high - 320) / 2)
    : about.task
      ? Math.min(130, Math.max(84, high * 0.088))
      : Math.max(160, (high - 520) / 2);
  const series = losses ? lossSeries(losses, about.member, hops) : [];
  const away = (state.overTime ?? []).flatMap((row) => row.changed?.mean ?? []);
  const finite = series.flatMap(({ ys }) => [...ys].filter(Number.isFinite));
  const lowest = finite.length ? Math.min(...finite) : 0;
  const top = chance
    ? Math.max(
        chance * CUT,
        lowest * CUT,
        ...away.map((its) => Math.min(its, chance * 2.2)),
        series.length ? 0 : 1,
      )
    : Math.max(...finite, 0.1) * 1.05;
  const highest = Math.max(0, ...finite, ...away);
  const examined = about.task?.chance_examined ?? [];
  const other = examined.some((its, n) => its !== about.task.chance[n]) ? " (last position)" : "";
  const changed = hops.map((hop, n) => ({
    name: `${hop}, with the changes${other}`,
    hop: n + 1,
    colour: ofHop(n),
    changed: true,
    xs: (state.overTime ?? []).map((row) => row.step),
    ys: (state.overTime ?? []).map((row) => row.changed.mean[n]),
  }));
  const upper = [...series, ...(state.overTime?.length ? changed : [])];
  const up = chart(width, {
    title: "Loss of every hop during training",
    height: tall + (two ? 0 : 40),
    bare: two,
    low: true,
    x,
    y: { low: 0, high: top, label: "loss" },
    series: upper,
    levels: chances.map((at, n) => ({ at, name: n ? "" : "chance" })),
  });
  pane.cut = highest > top ? ` · losses above ${number(top)} are cut` : "";
  pane.paths = about.task ? arrows(about) : [];
  pane.seen =
    parameters ??
    (two
      ? pane.paths.map((path) => ({
          path,
          name: `${path.layer}.${path.head} ${shortRole(path.source)} → ${shortRole(path.destination)}`,
          colour: pathColour(path, state),
          dash: path.kind === "routes" ? "6 3.5" : null,
          xs: maps.steps,
          ys: maps.steps.map((_, at) => maps.of(at, path)),
        }))
      : []);
  const down = chart(width, {
    title: parameters ? "Parameters during training" : "Attention along every path of the circuit",
    height: tall,
    low: Boolean(parameters),
    x,
    y: { low: 0, high: 1.04, label: parameters ? "share" : "attention" },
    series: pane.seen,
    levels: two && !parameters ? [{ at: 0.5, name: "" }] : [],
  });
  pane.charts = two ? [up, down] : [up];
  pane.drawn = [upper, pane.seen];
  pane.legends = [series, pane.seen].map((all) => legendOf(all, state));
  const lines = [
    series.some((its) => its.thin) ? "faint: training losses" : "",
    state.overTime?.length ? "broad: with what is switched off" : "",
    two && !parameters ? "dots: one half, from which an arrow counts as emerged" : "",
  ].filter(Boolean);
  // Outside of the SVG, so that moving it redraws nothing.
  pane.cursor = h("i", { class: "cursor" });
  pane.pointer = h("i", { class: "cursor pointer", hidden: true });
  pane.where = h("p", { class: "quiet" });
  fill(
    place,
    h(
      "div",
      { class: side ? "curve-row" : "curve-row under" },
      h(
        "div",
        { class: "stack" },
        pane.charts.map((each) => each.svg),
        h("div", { class: "over", "aria-hidden": "true" }, pane.cursor, pane.pointer),
      ),
      h(
        "div",
        { class: "legend" },
        pane.where,
        pane.legends.map((its) => its.element),
        h("p", { class: "quiet" }, lines.join(" · ")),
      ),
    ),
  );
  for (const each of pane.charts) {
    drag(each.svg, state, (event) => underPointer(each, event));
    each.svg.addEventListener("pointermove", (event) => {
      const { low, high } = spanOf(state);
      point(pane, state, Math.min(high, Math.max(low, underPointer(each, event))));
    });
    each.svg.addEventListener("pointerleave", () => point(pane, state, null));
  }
}

/** Training losses, smoothed and thinned, as lines; validation as dots. */
function lossSeries({ trainSteps, train, validationSteps, validation }, member, hops) {
  const made = [];
  hops.forEach((name, n) => {
    const ys = smoothed(trainSteps.map((_, at) => train(at, member, n)));
    const by = Math.max(1, Math.floor(ys.length / 700));
    made.push({
      name,
      hop: n + 1,
      colour: ofHop(n),
      thin: true,
      xs: trainSteps.filter((_, at) => at % by === 0),
      ys: ys.filter((_, at) => at % by === 0),
    });
    made.push({
      name: `${name}, validation`,
      hop: n + 1,
      colour: ofHop(n),
      xs: validationSteps,
      ys: validationSteps.map((_, at) => validation(at, member, n)),
      dots: validationSteps.length < 120,
    });
  });
  return made;
}

function smoothed(values) {
  let sum = 0;
  const found = [];
  const held = [];
  for (const value of values) {
    held.push(value);
    sum += value;
    if (held.length > WINDOW) sum -= held.shift();
    found.push(sum / held.length);
  }
  return found;
}

/** Show the values at the step under the pointer (null: at the current step). */
function point(pane, state, step) {
  const { unit = "step" } = state.about;
  const at = step ?? state.steps[state.at];
  pane.pointer.hidden = step === null;
  stand(pane, pane.pointer, at);
  write(pane.where, `at ${unit} ${whole(at)}`);
  for (const each of pane.legends) each.show(at);
}

function stand({ charts: [{ toX, svg }] }, line, step) {
  line.style.transform = `translateX(${(100 * toX(step)) / svg.viewBox.baseVal.width}%)`;
}

function update(pane, state) {
  const { steps, about } = state;
  const step = steps[state.at];
  const where = `${about.unit ?? "step"} ${whole(step)} of ${whole(spanOf(state).high)}`;
  const kept = counted(steps.length, about.unit === "epoch" ? "recorded epoch" : "checkpoint");
  pane.hint(`${where} · ${kept}${pane.cut} · point at a curve for its values`);
  stand(pane, pane.cursor, step);
  point(pane, state, null);
}

/** Highlight the curves of what is pointed at: the paths of a head, or the losses of a hop. */
function light(pane, { point, about }) {
  const lit = [
    (its) => its.hop !== undefined && its.hop === point?.hop,
    (its) => Boolean(its.path) && pathLit(point, its.path, about.task?.symbols),
  ];
  pane.charts.forEach(({ svg }, n) => {
    svg.querySelectorAll(".curve").forEach((curve, at) => {
      curve.classList.toggle("hot", lit[n](pane.drawn[n][at]));
    });
  });
}

/** The legend of the curves; pressing a path's entry shows its head. */
function legendOf(series, state) {
  return legend(
    state,
    series
      .filter((its) => !its.thin)
      .map((its) => ({
        ...its,
        name: its.name.replace(", validation", ""),
        on: its.path && (() => state.set({ head: `${its.path.layer}.${its.path.head}` })),
        point: its.path ?? (its.hop && { hop: its.hop }),
      })),
  );
}

/** Both charts as one SVG with a line at the current step, for saving. */
function together(pane, step) {
  const { width } = pane.charts[0].svg.viewBox.baseVal;
  const made = s("svg", { class: "chart" });
  let top = 0;
  for (const each of pane.charts) {
    const copy = each.svg.cloneNode(true);
    const { height } = each.svg.viewBox.baseVal;
    made.append(s("g", { transform: `translate(0 ${top})` }, [...copy.children]));
    top += height;
  }
  const x = pane.charts[0].toX(step);
  made.append(s("line", { class: "cursor", x1: x, x2: x, y1: 4, y2: top - 22 }));
  made.setAttribute("viewBox", `0 0 ${width} ${top}`);
  return made;
}

function numbers(state) {
  const { about, maps, losses, steps } = state;
  const paths = about.task ? arrows(about) : [];
  const hops = about.task?.hops ?? [];
  return {
    columns: ["step", ...hops.map((hop) => `loss of ${hop}`), ...paths.map((its) => its.key)],
    rows: steps.map((step, at) => {
      const n = losses?.validationSteps.length ? nearest(losses.validationSteps, step) : -1;
      return [
        step,
        ...hops.map((_, hop) => (n < 0 ? "" : losses.validation(n, about.member, hop))),
        ...paths.map((its) => (maps ? digits(maps.of(at, its)) : "")),
      ];
    }),
  };
}
