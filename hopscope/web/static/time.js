// The training: losses of every hop, and attention along every path.

import { ofTraining } from "./commands.js";
import { choice, fill, h, rule, s, write, zoom } from "./dom.js";
import { ofHop } from "./colours.js";
import { chart, legend, underPointer } from "./lines.js";
import { curves } from "./ngram.js";
import { Pane } from "./pane.js";
import { arrows, headName } from "./paths.js";
import { pathLit } from "./pointed.js";
import { drag } from "./slider.js";
import { EXAMPLES } from "./live.js";
import { nearest } from "./state.js";
import { pathColour } from "./strokes.js";
import { counted, digits, lastAlone, number, shortRole, waiting, whole } from "./words.js";

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
  const missing = whyEmpty(state);
  if (missing) {
    pane.hint("");
    return fill(place, h("p", { class: "quiet" }, missing));
  }
  const { room } = pane;
  const side = room > 640 ? SIDE : 0;
  const width = Math.max(280, room - side);
  const height = heightOf(state);
  const x = spanOf(state);
  const upper = ofLosses(state);
  const lower = state.steps.length > 1 ? ofPaths(state) : null;
  const up = chart(width, {
    title: "Loss of every hop during training",
    height: lower ? height : height + 40,
    bare: Boolean(lower),
    low: true,
    x,
    y: { low: 0, high: upper.top, label: "loss" },
    ...upper,
  });
  const down = lower && chart(width, { height, x, y: { low: 0, high: 1.04, label: lower.label }, ...lower });
  pane.cut = upper.highest > upper.top ? ` · losses above ${number(upper.top)} are cut` : "";
  pane.charts = lower ? [up, down] : [up];
  pane.drawn = [upper.series, lower?.series ?? []];
  pane.legends = pane.drawn.map((all) => legendOf(all, state));
  const lines = [
    upper.series.some((its) => its.thin) ? "faint: training losses, smoothed" : "",
    state.overTime?.length ? `broad: with what is switched off, on ${EXAMPLES} fresh examples${lastAlone(state.about)}` : "",
    lower && !state.values ? "dots: one half, from which an arrow counts as emerged" : "",
  ].filter(Boolean);
  // Outside of the SVG, so that moving it redraws nothing.
  pane.cursor = h("i", { class: "cursor" });
  pane.pointer = h("i", { class: "cursor pointer", hidden: true });
  pane.where = h("p", { class: "quiet" });
  const stack = h(
    "div",
    { class: "stack" },
    pane.charts.map((each) => each.svg),
    h("div", { class: "over", "aria-hidden": "true" }, pane.cursor, pane.pointer),
  );
  const keys = pane.legends.map((its) => its.element);
  const names = h("div", { class: "legend" }, pane.where, keys, h("p", { class: "quiet" }, lines.join(" · ")));
  fill(place, h("div", { class: side ? "curve-row" : "curve-row under" }, stack, names));
  for (const each of pane.charts) {
    drag(each.svg, state, (event) => underPointer(each, event));
    each.svg.addEventListener("pointermove", (event) => {
      const { low, high } = spanOf(state);
      point(pane, state, Math.min(high, Math.max(low, underPointer(each, event))));
    });
    each.svg.addEventListener("pointerleave", () => point(pane, state, null));
  }
}

/** Why there are no curves; empty if there are. */
function whyEmpty(state) {
  if (!state.steps.length) return waiting(state, "Losses are on their way");
  if (trained(state)) return "";
  return state.about.named
    ? "This model comes from elsewhere in one state of its weights: there is no training to go through."
    : "Its weights were written by hand: there was no training.";
}

/** The height of a chart in pixels. */
function heightOf({ pane, about }) {
  const high = innerHeight / zoom();
  if (pane === "time") return Math.max(150, (high - 320) / 2);
  return about.task ? Math.min(130, Math.max(84, high * 0.088)) : Math.max(160, (high - 520) / 2);
}

/** The curves of losses, chance, the top of their axis, and the highest loss. */
function ofLosses({ about, losses, overTime }) {
  const hops = about.task?.hops ?? ["loss"];
  const noted = losses ? lossSeries(losses, about.member, hops) : [];
  const changed = (overTime?.length ? hops : []).map((_, n) => ({
    hop: n + 1,
    colour: ofHop(n),
    changed: true,
    xs: overTime.map((row) => row.step),
    ys: overTime.map((row) => row.changed.mean[n]),
  }));
  const chances = [...new Set(about.task?.chance ?? (about.chance ? [about.chance] : []))].filter((its) => its > 0);
  const chance = Math.max(0, ...chances);
  const [own, away] = [noted, changed].map((all) => all.flatMap(({ ys }) => ys.filter(Number.isFinite)));
  const lowest = own.length ? Math.min(...own) : 0;
  const seen = [chance, lowest].map((its) => its * CUT);
  const top = chance
    ? Math.max(...seen, ...away.map((its) => Math.min(its, chance * 2.2)), noted.length ? 0 : 1)
    : Math.max(...own, 0.1) * 1.05;
  const levels = chances.map((at, n) => ({ at, name: n ? "" : "chance" }));
  return { series: [...noted, ...changed], levels, top, highest: Math.max(0, ...own, ...away) };
}

/** The curves of an n-gram model's parameters, or of attention along every path; null without any. */
function ofPaths(state) {
  const { about, maps, values } = state;
  if (values)
    return { title: "Parameters during training", label: "share", low: true, levels: [], series: curves(state) };
  const paths = about.task && maps ? arrows(about) : [];
  const series = paths.map((path) => ({
    path,
    colour: pathColour(path, state),
    dash: path.kind === "routes" ? "6 3.5" : null,
    name: `${headName(path)} ${shortRole(path.source)} → ${shortRole(path.destination)}`,
    xs: maps.steps,
    ys: maps.steps.map((_, at) => maps.of(at, path)),
  }));
  const title = "Attention along every path of the circuit";
  return paths.length ? { title, label: "attention", levels: [{ at: 0.5, name: "" }], series } : null;
}

/** Training losses, smoothed and thinned, as lines; validation as dots. */
function lossSeries({ trainSteps, train, validationSteps, validation }, member, hops) {
  return hops.flatMap((name, n) => {
    const ys = smoothed(trainSteps.map((_, at) => train(at, member, n)));
    const by = Math.max(1, Math.floor(ys.length / 700));
    const its = { hop: n + 1, colour: ofHop(n) };
    const [xs, few] = [trainSteps, ys].map((all) => all.filter((_, at) => at % by === 0));
    const noted = validationSteps.map((_, at) => validation(at, member, n));
    return [
      { ...its, thin: true, xs, ys: few },
      { ...its, name, xs: validationSteps, ys: noted, dots: validationSteps.length < 120 },
    ];
  });
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

/** Show the values near the step under the pointer (null: at the current step). */
function point(pane, state, step) {
  const { unit = "step" } = state.about;
  const at = step ?? state.steps[state.at];
  pane.pointer.hidden = step === null;
  stand(pane, pane.pointer, at);
  // Values are those of the nearest step at which each curve was measured.
  write(pane.where, `${step === null ? "at" : "near"} ${unit} ${whole(at)}`);
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

/** The legend of the curves with names; pressing a path's entry shows its head. */
function legendOf(series, state) {
  const entries = series.filter(({ name }) => name).map((its) => ({
    ...its,
    on: its.path && (() => state.set({ head: headName(its.path) })),
    point: its.path ?? (its.hop && { hop: its.hop }),
  }));
  return legend(state, entries);
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
  made.append(rule(x, 4, x, top - 22, { class: "cursor" }));
  made.setAttribute("viewBox", `0 0 ${width} ${top}`);
  return made;
}

function numbers(state) {
  const { about, maps, losses, steps } = state;
  const paths = about.task ? arrows(about) : [];
  const hops = about.task?.hops ?? [];
  return steps.map((step, at) => {
    const n = losses?.validationSteps.length ? nearest(losses.validationSteps, step) : -1;
    const noted = hops.map((name, hop) => [`loss of ${name}`, n < 0 ? "" : losses.validation(n, about.member, hop)]);
    const attention = paths.map((its) => [its.key, maps ? digits(maps.of(at, its)) : ""]);
    return { step, ...Object.fromEntries([...noted, ...attention]) };
  });
}
