// Charts of curves as SVG: axes, series, levels, and the values under the pointer.

import { button, h, label, labelledSvg, rule, s, write } from "./dom.js";
import { points } from "./pointed.js";
import { nearest } from "./state.js";
import { number, whole } from "./words.js";

const LEFT = 44;
const RIGHT = 14;
/** The margins of the axis of steps; the slider has the same. */
export const EDGES = { left: LEFT, right: RIGHT };
const TOP = 10;

/** A function from values to places; with `log`, places are proportional to log(1 + value). */
export function scale(low, high, from, to, log = false) {
  const bend = log ? (value) => Math.log10(Math.max(value, 0) + 1) : (value) => value;
  const [a, b] = [bend(low), bend(high)];
  const at = (value) => from + ((bend(value) - a) / (b - a || 1)) * (to - from);
  at.back = (place) => {
    const value = a + ((place - from) / (to - from || 1)) * (b - a);
    return log ? 10 ** value - 1 : value;
  };
  return at;
}

/** Round numbers for the ticks of an axis. */
function ticks(low, high, count, log = false) {
  if (log) {
    const found = [0];
    for (let value = 1; value <= high; value *= 10) if (value >= low) found.push(value);
    return found;
  }
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((its) => its >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step)
    found.push(Math.round(value / step) * step);
  return found;
}

/**
 * A chart of {title, height, x: {low, high, log}, y: {low, high, label}, series, levels, bare?, low?}:
 * `bare` is without numbers below, `low` has its label at the bottom.
 * A series is {name, colour, xs, ys, dash?, dots?, thin?, changed?}; a level {at, name}.
 */
export function chart(width, asked) {
  const { height, x, y } = asked;
  const bottom = asked.bare ? 8 : 22;
  const toX = scale(x.low, x.high, LEFT, width - RIGHT, x.log);
  const toY = scale(y.low, y.high, height - bottom, TOP, false);
  const made = labelledSvg("chart", width, height, asked.title);
  const across = (value, props) => rule(LEFT, toY(value), width - RIGHT, toY(value), props);
  const grid = s("g", { class: "grid" });
  const named = asked.levels.filter(({ name }) => name);
  for (const value of ticks(y.low, y.high, Math.max(2, Math.floor(height / 40)))) {
    if (named.some(({ at }) => Math.abs(toY(at) - toY(value)) < 11)) continue; // a level's name
    const text = String(Number(value.toPrecision(4)));
    grid.append(
      across(value),
      label(LEFT - 8, toY(value), text, { "text-anchor": "end", "dominant-baseline": "central" }),
    );
  }
  if (!asked.bare)
    for (const value of ticks(x.low, x.high, Math.max(3, Math.floor(width / 110)), x.log))
      grid.append(label(toX(value), height - 5, whole(value), { "text-anchor": "middle" }));
  grid.append(label(LEFT + 6, asked.low ? height - bottom - 6 : TOP + 9, y.label, { class: "axis" }));
  made.append(grid);
  for (const { at, name } of asked.levels)
    made.append(
      across(at, { class: "level" }),
      name ? label(LEFT - 8, toY(at) + 4, name, { class: "level", "text-anchor": "end" }) : "",
    );
  const inside = (value) => Math.min(Math.max(toY(value), TOP - 6), height - bottom);
  for (const each of asked.series) {
    made.append(
      s("path", {
        class: each.thin ? "thin curve" : each.changed ? "changed curve" : "curve",
        d: line(each, toX, inside),
        style: { stroke: each.colour },
        "stroke-dasharray": each.dash,
      }),
    );
    const dots = each.dots ? each.xs.map((value, n) => [toX(value), each.ys[n]]) : [];
    for (const [cx, loss] of dots)
      if (!Number.isNaN(loss))
        made.append(s("circle", { class: "dot", cx, cy: inside(loss), r: 2.2, style: { fill: each.colour } }));
  }
  return { svg: made, toX };
}

function line({ xs, ys }, toX, toY) {
  let pen = "M";
  let text = "";
  for (let n = 0; n < xs.length; n++) {
    if (Number.isNaN(ys[n]) || ys[n] === null) {
      pen = "M";
      continue;
    }
    text += `${pen}${toX(xs[n]).toFixed(1)} ${toY(ys[n]).toFixed(1)}`;
    pen = "L";
  }
  return text;
}

/** The step under the pointer over a chart. */
export function underPointer({ svg, toX }, { clientX }) {
  const { left, width } = svg.getBoundingClientRect();
  return toX.back(((clientX - left) / width) * svg.viewBox.baseVal.width);
}

/** A legend of curves with their colours; `show(x)` writes their values at x. */
export function legend(state, entries) {
  const values = entries.map(() => h("span"));
  const keys = entries.map(({ name, colour, dash, on, point }, n) => {
    const sample = h("i", { class: dash ? "dashed" : "", style: { "--its": colour } });
    const told = [sample, name, h("b", {}, values[n])];
    const key = on ? button(told, on, { class: "key" }) : h("span", { class: "key" }, told);
    return point ? points(key, state, point) : key;
  });
  return {
    element: h("div", { class: "keys" }, keys),
    show(x) {
      entries.forEach(({ xs, ys }, n) => {
        write(values[n], number(xs.length ? ys[nearest(xs, x)] : NaN));
      });
    },
  };
}
