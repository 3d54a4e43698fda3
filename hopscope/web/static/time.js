// The training: losses of every hop, attention along every path, and one slider over all of it.

import { button, choice, fill, h, s } from "./dom.js";
import { ofHop, ofMoment, ofSymbol } from "./colours.js";
import { colourBy } from "./circuit.js";
import { chart, legend, nearest } from "./lines.js";
import { Pane } from "./pane.js";
import { arrows } from "./paths.js";
import { number, shortRole, whole } from "./words.js";

const SIDE = 190, WINDOW = 25;

export function timePane(state) {
  const pane = new Pane(state, "time", "Training", { drawing: () => pane.both(), rows: () => numbers(state) });
  const place = h("div", { class: "curves" }), rail = h("div", { class: "rail" });
  pane.body.append(place, rail);
  pane.slider = slider(state);
  const rebuild = () => {
    if (!state.steps) return;
    build(pane, state, place, rail);
    if (pane.charts) update(pane, state);
  };
  new ResizeObserver(() => { if (place.clientWidth !== pane.width) rebuild(); }).observe(place);
  state.watch("about losses maps curves steps overTime colour scale theme seed", rebuild);
  state.watch("step playing", () => { if (pane.charts) update(pane, state); });
  state.watch("about step steps scale playing", () => { if (state.steps) tools(pane, state); });
  pane.both = () => (pane.charts ? together(pane) : s("svg", { viewBox: "0 0 1 1" }));
  return pane;
}

/** Where the stages of an n-gram training begin. */
function stages(about) {
  let from = 0;
  return (about.ngram?.stages ?? []).map(({ trains, epochs }, n) => {
    const found = { step: from, name: trains, text: `stage ${trains} begins`, hop: n };
    from += epochs;
    return found;
  });
}

/** What happened when: paths that emerged and hops that were learned, in order. */
export function events(about) {
  if (!about.task) return stages(about);
  const paths = arrows(about).filter((its) => its.emerged !== null).map((its) => ({ step: its.emerged, name: `${its.layer}.${its.head}`, text: `${its.key} emerged`, path: its }));
  const hops = (about.learned ?? []).map((step, n) => ({ step, name: `hop ${n + 1}`, text: `hop ${n + 1} is learned`, hop: n }));
  return [...paths, ...hops].filter((its) => its.step !== null).sort((a, b) => a.step - b.step);
}

function tools(pane, state) {
  const unit = state.about.unit ?? "step", steps = state.steps;
  pane.hint(`${unit} ${whole(steps[state.at])} of ${whole(steps.at(-1))} · ${steps.length} checkpoint${steps.length === 1 ? "" : "s"}`);
  if (steps.length > 1) fill(pane.tools, choice("Axis of steps", [["linear", "linear"], ["log", "log"]], state.scale, (scale) => state.set({ scale })));
  else fill(pane.tools);
  const run = state.about.name;
  pane.told(state.about.command?.time ?? `hopscope emergence ${run}`, state.about.python?.time ?? "");
}

function build(pane, state, place, rail) {
  pane.width = place.clientWidth;
  const { about, losses, maps, steps } = state;
  if (!steps.length || (steps.length < 2 && losses && !losses.trainSteps.length && !losses.validationSteps.length)) {
    pane.charts = null;
    fill(rail);
    return fill(place, h("p", { class: "quiet" }, steps.length ? "Its weights were written by hand: there was no training." : "No checkpoint yet."));
  }
  const side = pane.width > 640 ? SIDE : 0;
  const width = Math.max(280, pane.width - side), hops = about.task?.hops ?? ["loss"];
  const last = Math.max(steps.at(-1), losses ? lastOf(losses.trainSteps) : 0, 1);
  const x = { low: 0, high: last, log: state.scale === "log" }, member = Math.max(0, (about.seeds ?? []).indexOf(state.seed));
  const two = steps.length > 1 && ((about.task && arrows(about).length > 0 && maps) || state.curves), guess = about.task?.guess?.[0] ?? about.guess ?? 0, tall = state.pane === "time" ? Math.max(150, (innerHeight - 320) / 2) : about.task ? Math.min(130, Math.max(84, innerHeight * 0.088)) : 160;
  const series = losses ? lossSeries(losses, member, hops) : [];
  const top = guess ? Math.max(guess * 1.35, ...(state.overTime ?? []).flatMap((row) => row.changed?.mean ?? []).map((its) => Math.min(its, guess * 2.2)), series.length ? 0 : 1) : Math.max(...series.flatMap((its) => [...its.ys].filter((value) => value < Infinity)), 0.1) * 1.05;
  const changed = hops.map((_, n) => ({ name: `hop ${n + 1}, with the changes`, colour: ofHop(n), dash: "5 3", width: 2, xs: (state.overTime ?? []).map((row) => row.step), ys: (state.overTime ?? []).map((row) => row.changed.mean[n]) }));
  const up = chart(width, { title: "Loss of every hop during training", height: tall + (two ? 0 : 40), bare: two, low: true, x, y: { low: 0, high: top, label: "loss" }, series: [...series, ...(state.overTime?.length ? changed : [])], levels: guess ? [{ at: guess, name: "guessing" }] : [] });
  pane.paths = about.task ? arrows(about) : [];
  pane.seen = state.curves ?? (two ? pane.paths.map((path) => ({ path, name: `${path.layer}.${path.head} ${shortRole(path.reader)} ← ${shortRole(path.source)}`, colour: pathColour(path, state), dash: path.kind === "carries" ? null : "4 3", xs: maps.steps, ys: maps.steps.map((_, at) => maps.of(at, path)) })) : []);
  const down = chart(width, { title: state.curves ? "Parameters during training" : "Attention along every path of the circuit", height: tall, x, y: { low: 0, high: 1.04, label: state.curves ? "share" : "attention" }, series: pane.seen, levels: two && !state.curves ? [{ at: 0.5, name: "emerged" }] : [] });
  pane.charts = two ? [up, down] : [up];
  pane.series = [series, pane.seen];
  pane.legend = h("div", { class: "legend" });
  fill(place, h("div", { class: "curve-row" }, h("div", { class: "stack" }, pane.charts.map((each) => each.svg)), pane.legend));
  for (const each of pane.charts) drag(each.svg, state, (event) => each.toX.back(((event.clientX - each.svg.getBoundingClientRect().left) / each.svg.getBoundingClientRect().width) * width));
  fill(rail, pane.slider.build(up, width, state));
}

function drag(svg, state, value) {
  const go = (event) => state.set({ step: state.steps[nearest(state.steps, value(event))], playing: false }, "replace");
  svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); go(event); });
  svg.addEventListener("pointermove", (event) => { if (event.buttons & 1) go(event); });
}

function lastOf(list) { return list.length ? list[list.length - 1] : 0; }

/** Training losses, smoothed and thinned, as lines; validation as dots. */
function lossSeries({ trainSteps, train, validationSteps, validation }, member, hops) {
  const made = [];
  hops.forEach((_, n) => {
    const ys = smoothed(trainSteps.map((_, at) => train(at, member, n))), by = Math.max(1, Math.floor(ys.length / 700));
    made.push({ name: `hop ${n + 1}`, colour: ofHop(n), thin: true, xs: trainSteps.filter((_, at) => at % by === 0), ys: ys.filter((_, at) => at % by === 0) });
    made.push({ name: `hop ${n + 1}, validation`, colour: ofHop(n), xs: validationSteps, ys: validationSteps.map((_, at) => validation(at, member, n)), dots: validationSteps.length < 120 });
  });
  return made;
}

function smoothed(values) {
  let sum = 0;
  const found = [], held = [];
  for (const value of values) {
    held.push(value); sum += value;
    if (held.length > WINDOW) sum -= held.shift();
    found.push(sum / held.length);
  }
  return found;
}

function pathColour(path, state) {
  const symbols = state.about.task.symbols ?? [], by = colourBy(state), its = path.carried[0] ?? path.told[0];
  if (by === "carries" && its) return ofSymbol(symbols, its);
  const when = Object.values(state.about.emerged ?? {}).filter((step) => step !== null);
  if (by === "emerged" && path.emerged !== null) return ofMoment((path.emerged - Math.min(...when)) / (Math.max(...when) - Math.min(...when) || 1));
  return path.kind === "carries" ? "var(--accent)" : "var(--known)";
}

function update(pane, state) {
  const step = state.steps[state.at];
  for (const each of pane.charts) each.point(step);
  fill(pane.legend, pane.series.map((series) => legend(series.filter((its) => !its.thin).map((its) => ({ name: its.name.replace(", validation", ""), colour: its.colour, dash: its.dash, value: its.xs.length ? its.ys[nearest(its.xs, step)] : NaN,
      ...(its.path ? { on: () => state.set({ head: `${its.path.layer}.${its.path.head}` }) } : {}) })))));
  pane.slider.update(state);
  pane.refreshNumbers();
}

/** The slider: a notch for each checkpoint, a mark for each path and hop. */
function slider(state) {
  const thumb = s("circle", { class: "thumb", cy: 22, r: 7 }), play = button("▶", () => toggle(), { class: "icon play", title: "Play (space)", "aria-label": "Play through the training" });
  const bar = h("div", { class: "slider", role: "slider", tabindex: "0", "aria-label": "Checkpoint", "aria-valuemin": "0" });
  let made = null;
  const toggle = () => state.set({ playing: !state.playing }, "none");
  let timer = 0;
  state.watch("playing", () => {
    clearInterval(timer);
    play.textContent = state.playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", state.playing ? "Pause" : "Play through the training");
    if (!state.playing) return;
    if (state.at >= state.steps.length - 1) state.set({ step: state.steps[0] }, "replace");
    timer = setInterval(() => {
      if (state.at >= state.steps.length - 1) return state.set({ playing: false }, "none");
      state.set({ step: state.steps[state.at + 1] }, "replace");
    }, Math.max(40, Math.min(180, 6000 / state.steps.length)));
  });
  return { build(up, width) {
    const { steps, about } = state, svg = s("svg", { viewBox: `0 0 ${width} 52`, width, height: 52, "aria-hidden": "true" });
    const first = up.toX(steps[0]), end = up.toX(steps.at(-1));
    svg.append(s("line", { class: "track", x1: first, x2: end, y1: 22, y2: 22 }), s("line", { class: "gone", x1: first, x2: first, y1: 22, y2: 22 }));
    if (steps.length < 400) for (const step of steps) svg.append(s("line", { class: "notch", x1: up.toX(step), x2: up.toX(step), y1: 18, y2: 26 }));
    let before = -99, level = 0;
    for (const its of events(about).filter((each) => each.path)) {
      const x = up.toX(its.step);
      level = x - before < 25 ? (level + 1) % 2 : 0;
      before = x;
      svg.append(s("g", { class: "event" }, s("title", {}, `${its.text} at step ${whole(its.step)}`), s("path", { d: `M${x} 28l-3.4 5h6.8Z`, style: { fill: pathColour(its.path, state) } }), s("text", { x, y: 41 + level * 9.5, "text-anchor": "middle" }, its.name)));
    }
    before = -99;
    for (const its of events(about).filter((each) => !each.path)) {
      const x = up.toX(its.step), near = x - before < 78;
      before = x;
      svg.append(s("g", { class: "event hop" }, s("title", {}, `${its.text} at step ${whole(its.step)}`), s("line", { x1: x, x2: x, y1: 4, y2: 16, style: { stroke: ofHop(its.hop) } }), s("text", { x: x + 4, y: 11, style: { fill: ofHop(its.hop) } }, its.text.startsWith("stage") ? (near ? its.name : `stage ${its.name}`) : near ? `${its.hop + 1}` : `hop ${its.hop + 1} learned`)));
    }
    svg.append(thumb);
    made = { up, svg, first };
    bar.setAttribute("aria-valuemax", String(steps.length - 1));
    fill(bar, svg);
    bar.onpointerdown = (event) => { bar.setPointerCapture(event.pointerId); slide(event); };
    bar.onpointermove = (event) => { if (event.buttons & 1) slide(event); };
    const slide = (event) => {
      const box = svg.getBoundingClientRect(), value = up.toX.back(((event.clientX - box.left) / box.width) * width);
      state.set({ step: steps[nearest(steps, value)], playing: false }, "replace");
    };
    return [play, bar];
  }, update() {
    const { steps, at } = state, x = made.up.toX(steps[at]);
    thumb.setAttribute("cx", x);
    made.svg.querySelector(".gone").setAttribute("x2", x);
    bar.setAttribute("aria-valuenow", String(at));
    bar.setAttribute("aria-valuetext", `step ${whole(steps[at])}`);
    play.disabled = steps.length < 2;
  } };
}

/** Both charts as one drawing, to be saved. */
function together(pane) {
  const { width } = pane.charts[0].svg.viewBox.baseVal, made = s("svg", { class: "chart" });
  let top = 0;
  for (const each of pane.charts) {
    const copy = each.svg.cloneNode(true), { height } = each.svg.viewBox.baseVal;
    made.append(s("g", { transform: `translate(0 ${top})` }, [...copy.children]));
    top += height;
  }
  made.setAttribute("viewBox", `0 0 ${width} ${top}`);
  return made;
}

function numbers(state) {
  const { maps, losses, steps } = state, paths = state.about.task ? arrows(state.about) : [], member = Math.max(0, (state.about.seeds ?? []).indexOf(state.seed));
  const hops = state.about.task?.hops ?? [];
  return { columns: ["step", ...hops.map((_, n) => `loss of hop ${n + 1}`), ...paths.map((its) => its.key)],
    rows: steps.map((step, at) => {
      const n = losses?.validationSteps.length ? nearest(losses.validationSteps, step) : -1;
      return [step, ...hops.map((_, hop) => (n < 0 ? "" : losses.validation(n, member, hop))), ...paths.map((its) => (maps ? maps.of(at, its) : ""))];
    }) };
}
