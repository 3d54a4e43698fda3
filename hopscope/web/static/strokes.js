// How arrows bend, and how the squares look that say what a position holds.

import { s } from "./dom.js";
import { ofSymbol } from "./colours.js";
import { number, symbolName } from "./words.js";

const SQUARE = 11;

/** The curve of a path, shifted to the side by so much: text, points, middle. */
export function bent({ x, y }, path, aside) {
  const clear = 13, gap = y(path.layer) - y(path.layer + 1);
  const from = [x(path.source), y(path.layer) - clear], to = [x(path.reader), y(path.layer + 1) + clear + 4];
  const spread = aside * 0.9, room = Math.max(8, gap * 0.5);
  const points = [from, [from[0] + spread, from[1] - room * 0.8], [to[0] + spread, to[1] + room * 0.9], to];
  const at = (t) => [0, 1].map((axis) => points[0][axis] * (1 - t) ** 3 + 3 * points[1][axis] * t * (1 - t) ** 2 + 3 * points[2][axis] * t ** 2 * (1 - t) + points[3][axis] * t ** 3);
  return { points, d: curve(points), at };
}

function curve(points) {
  const [a, b, c, d] = points.map((its) => its.map((value) => value.toFixed(1)).join(" "));
  return `M${a}C${b} ${c} ${d}`;
}

/** The strokes of one arrow, side by side, and its point. */
export function ribbons(bend, size, strokes) {
  const each = size / strokes.length, made = [];
  strokes.forEach(({ colour, dashed }, n) => {
    const aside = each * (n - (strokes.length - 1) / 2);
    const points = bend.points.map(([x, y]) => [x + aside, y]);
    made.push(s("path", { class: `stroke${dashed ? " dashed" : ""}`, d: curve(points), style: { stroke: colour, "stroke-width": Math.max(1.3, each - (strokes.length > 1 ? 0.8 : 0)) } }));
  });
  const [x, y] = bend.points[3], wide = Math.max(4.2, size * 0.62 + 2.2);
  made.push(s("path", { class: "point", d: `M${x - wide} ${y + 1}L${x} ${y - Math.max(6, wide * 1.05)}L${x + wide} ${y + 1}Z`, style: { fill: strokes[0].colour } }));
  made.push(s("path", { class: "grip", d: bend.d }));
  return made;
}

/** At every role and layer: a square for each symbol, as full as it is held. */
export function nodes(scene, state) {
  const { x, y, roles, layers, symbols, step } = scene, group = s("g", { class: "nodes" }), made = [];
  const size = Math.min(SQUARE, (step - 12) / Math.max(1, symbols.length) - 2), wide = symbols.length * (size + 2) + 6;
  for (let level = 0; level <= layers; level++) for (const role of roles) {
    if (!state.contents) {
      group.append(s("circle", { class: "dot", cx: x(role), cy: y(level), r: 3.5 }));
      continue;
    }
    const node = s("g", { class: "node", transform: `translate(${(x(role) - wide / 2).toFixed(1)} ${(y(level) - size / 2 - 3).toFixed(1)})` },
      s("title", {}), s("rect", { class: "frame", width: wide, height: size + 6, rx: (size + 6) / 2.6 }));
    symbols.forEach((symbol, n) => {
      const left = 4 + n * (size + 2), colour = ofSymbol(symbols, symbol);
      const held = s("rect", { class: "held", x: left, y: 3, width: size, height: size, rx: 2.2, style: { fill: colour } });
      node.append(s("rect", { class: "slot", x: left, y: 3, width: size, height: size, rx: 2.2, style: { stroke: colour } }), held);
      made.push({ held, level, role, symbol, n, size, node });
    });
    group.append(node);
  }
  return { group, update: () => show(made, state) };
}

function show(made, state) {
  const { contents, at } = state;
  if (!contents) return;
  const texts = new Map();
  for (const { held, level, role, symbol, n, size, node } of made) {
    const share = contents.share(at, level, role, n), full = Math.min(1, Math.max(0, Number.isNaN(share) ? 0 : share));
    held.setAttribute("height", (size * full).toFixed(2));
    held.setAttribute("y", (3 + size * (1 - full)).toFixed(2));
    texts.set(node, [...(texts.get(node) ?? [`${role}, ${level ? `after layer ${level - 1}` : "input"}:`]), `${symbolName(symbol)} ${number(full)}`]);
  }
  for (const [node, lines] of texts) node.firstChild.textContent = lines.join(" ");
}
