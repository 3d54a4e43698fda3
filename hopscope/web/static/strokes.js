// The shapes of arrows, and the squares that show what a position holds.

import { box, mark, s, write } from "./dom.js";
import { ofMoment, ofSymbol } from "./colours.js";
import { squaresOf } from "./maps.js";
import { number, symbolName } from "./words.js";

const SQUARE = 11;
const CORNER = 2.2;

/** The curve of a path, shifted sideways by `aside`: SVG text `d`, control points, and `at(t)`. */
export function bent({ x, y }, path, aside) {
  const clear = 13;
  const gap = y(path.layer) - y(path.layer + 1);
  const from = [x(path.source), y(path.layer) - clear];
  const to = [x(path.destination), y(path.layer + 1) + clear + 4];
  const spread = aside * 0.9;
  const room = Math.max(8, gap * 0.5);
  const points = [from, [from[0] + spread, from[1] - room * 0.8], [to[0] + spread, to[1] + room * 0.9], to];
  const at = (t) =>
    [0, 1].map(
      (axis) =>
        points[0][axis] * (1 - t) ** 3 +
        3 * points[1][axis] * t * (1 - t) ** 2 +
        3 * points[2][axis] * t ** 2 * (1 - t) +
        points[3][axis] * t ** 3,
    );
  return { points, d: curve(points), at };
}

function curve(points) {
  const [a, b, c, d] = points.map((its) => its.map((value) => value.toFixed(1)).join(" "));
  return `M${a}C${b} ${c} ${d}`;
}

/** The strokes of one arrow, side by side, and its head. */
export function ribbons(bend, size, strokes) {
  const each = size / strokes.length;
  const made = [];
  strokes.forEach(({ colour, dashed }, n) => {
    const aside = each * (n - (strokes.length - 1) / 2);
    const points = bend.points.map(([x, y]) => [x + aside, y]);
    made.push(
      s("path", {
        class: `stroke${dashed ? " dashed" : ""}`,
        d: curve(points),
        style: { stroke: colour, "stroke-width": Math.max(1.3, each - (strokes.length > 1 ? 0.8 : 0)) },
      }),
    );
  });
  const [x, y] = bend.points[3];
  const wide = Math.max(4.2, size * 0.62 + 2.2);
  made.push(
    s("path", {
      class: "point",
      d: `M${x - wide} ${y + 1}L${x} ${y - Math.max(6, wide * 1.05)}L${x + wide} ${y + 1}Z`,
      style: { fill: strokes[0].colour },
    }),
  );
  made.push(s("path", { class: "grip", d: bend.d }));
  return made;
}

/** At every role and layer: a square for each symbol, filled by its decodability. */
export function nodes(scene, state) {
  const { x, y, roles, layers, symbols, step, drawn } = scene;
  const group = s("g", { class: "nodes" });
  const made = [];
  const size = Math.min(SQUARE, (step - 12) / Math.max(1, symbols.length) - 2);
  const wide = symbols.length * (size + 2) + 6;
  const levels = Array.from({ length: layers + 1 }, (_, level) => level).filter(drawn);
  for (const level of levels)
    for (const role of roles) {
      if (!state.contents) {
        group.append(s("circle", { class: "dot", cx: x(role), cy: y(level), r: 3.5 }));
        continue;
      }
      const corner = [x(role) - wide / 2, y(level) - size / 2 - 3];
      const node = s(
        "g",
        { class: "node", transform: `translate(${corner.map((its) => its.toFixed(1)).join(" ")})` },
        s("title", {}),
        box(0, 0, wide, size + 6, { class: "frame", rx: (size + 6) / 2.6 }),
      );
      symbols.forEach((symbol, n) => {
        const left = 4 + n * (size + 2);
        const style = { stroke: ofSymbol(symbols, symbol) };
        node.append(box(left, 3, size, size, { class: "slot", rx: CORNER, style }));
        made.push({ level, role, n, node, left: corner[0] + left, floor: corner[1] + 3 + size });
      });
      group.append(node);
    }
  // All squares of a symbol are one shape, because each changed shape costs time.
  const shapes = symbols.map((its) => s("path", { class: "held", style: { fill: ofSymbol(symbols, its) } }));
  group.append(...shapes);
  const full = (contents, { level, role, n }) => {
    const share = contents.share(state.at, level, role, n);
    return Math.min(1, Math.max(0, Number.isNaN(share) ? 0 : share));
  };
  const squares = made.length > 0;
  const update = () => {
    if (!squares) return;
    const { contents, old } = squaresOf(state);
    const parts = symbols.map(() => "");
    for (const its of made) parts[its.n] += block(its.left, its.floor, size, size * full(contents, its));
    shapes.forEach((shape, n) => mark(shape, { d: parts[n] }));
    group.classList.toggle("old", old);
  };
  const tell = () => {
    const { contents, before } = squaresOf(state);
    const texts = new Map();
    for (const its of made) {
      const where = `${its.role}, ${its.level ? `after layer ${its.level - 1}` : "input"}:`;
      const held = `${symbolName(symbols[its.n])} ${number(full(contents, its))}`;
      const usual = before ? ` (${number(full(before, its))} with nothing off)` : "";
      texts.set(its.node, `${texts.get(its.node) ?? where} ${held}${usual}`);
    }
    for (const [node, text] of texts) write(node.firstChild, text);
  };
  return { group, update, tell, squares };
}

/** The path of a box with round corners: left edge, bottom, width and height. */
function block(left, floor, wide, high) {
  if (high < 0.05) return "";
  const r = Math.min(CORNER, high / 2);
  const [across, up] = [wide - 2 * r, high - 2 * r].map((its) => its.toFixed(1));
  return (
    `M${(left + r).toFixed(1)} ${floor.toFixed(1)}h${across}` +
    `q${r} 0 ${r} ${-r}v${-up}q0 ${-r} ${-r} ${-r}h${-across}q${-r} 0 ${-r} ${r}v${up}q0 ${r} ${r} ${r}z`
  );
}

/** The colours of an arrow, by the symbols it moves, by its emergence, or by its component's kind. */
export function strokesOf(path, state) {
  const by = colourBy(state);
  const symbols = state.about.task.symbols ?? [];
  const routed = path.routed.filter((its) => !path.carried.includes(its));
  if (by === "moves" && path.carried.length + routed.length)
    return [
      ...path.carried.map((its) => ({ colour: ofSymbol(symbols, its) })),
      ...routed.map((its) => ({ colour: ofSymbol(symbols, its), dashed: true })),
    ];
  const dashed = path.kind === "routes";
  if (by === "emerged") return [{ colour: momentColour(path, state.about), dashed }];
  return [{ colour: path.kind === "weak" ? "var(--known)" : "var(--accent)", dashed }];
}

/** The main colour of a path. */
export function pathColour(path, state) {
  return strokesOf(path, state)[0].colour;
}

/** The colour of a path's emergence, between the first and the last of its circuit. */
function momentColour({ emerged }, about) {
  if (emerged === null) return "var(--known)";
  const all = Object.values(about.emerged ?? {}).filter((step) => step !== null);
  const first = Math.min(...all);
  return ofMoment((emerged - first) / (Math.max(...all) - first || 1));
}

/** What the colours of arrows mean: the user's choice, or the best available. */
export function colourBy({ colour, about }) {
  if (colour) return colour;
  if (about.circuit?.account) return "moves";
  return Object.keys(about.emerged ?? {}).length ? "emerged" : "kind";
}
