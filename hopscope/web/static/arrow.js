// One arrow of the circuit: a path with its name and its tooltip; pressing it switches the path
// off.

import { s } from "./dom.js";
import { bent, ribbons, strokesOf } from "./strokes.js";
import { lostOf } from "./paths.js";
import { tagOf } from "./pointed.js";
import { KINDS, number, percent, symbolName, whole } from "./words.js";

const THIN = 1.6;
const THICK = 11;

/** Draw a path as an arrow with its name; `all` are all paths, so that parallel arrows are spread. */
export function arrow(path, all, { scene, state, tip }) {
  const alike = all.filter(
    (its) => its.layer === path.layer && its.destination === path.destination && its.source === path.source,
  );
  const near = alike.indexOf(path) - (alike.length - 1) / 2;
  const lost = path.component ? (lostOf(path.component)?.mean ?? 0) : 0.3;
  const size = THIN + (THICK - THIN) * Math.min(1, Math.max(0, lost));
  const curve = bent(scene, path, near * Math.max(20, size + 9));
  const middle = curve.at(0.5 - 0.17 * near);
  const group = s("g", { class: "arrow" }, ribbons(curve, size, strokesOf(path, state)));
  const name = `${path.layer}.${path.head}`;
  const item = { layer: path.layer, head: path.head, destination: path.destination, source: path.source };
  const made = {
    class: "tag",
    data: { item: `${name}:${path.destination}`, path: path.key, key: path.key },
    ...{ name, place: middle, shape: s("circle", { class: "disc", r: 10.5 }), arm: 7 },
    ...{ lines: () => told(path, state), others: [group] },
  };
  return { path, group, at: middle, ...tagOf(item, made, { state, tip }) };
}

/** The lines of a path's tooltip. */
function told(path, state) {
  const now = state.maps ? state.maps.of(state.at, path) : null;
  const lines = [[`${path.layer}.${path.head}  ${path.source} → ${path.destination}`]];
  if (now !== null) lines.push(["attention here", number(now)]);
  if (path.component) {
    const { kind, heads } = path.component;
    if (kind) lines.push(["kind", KINDS[kind]]);
    const lost = lostOf(path.component);
    const what = heads.length > 1 ? `heads ${heads.map((head) => `${path.layer}.${head}`).join(", ")}` : "it";
    if (lost)
      lines.push([`the circuit loses without ${what}`, `${percent(lost.mean)} ± ${percent(lost.mean - lost.low)}`]);
    if (path.emerged !== null) lines.push(["attention passed one half", `step ${whole(path.emerged)}`]);
    if (path.carried.length) lines.push(["moves to the answer", path.carried.map(symbolName).join(", ")]);
    if (path.routed.length) lines.push(["routes later heads by", path.routed.map(symbolName).join(", ")]);
  }
  lines.push([
    state.isOff(path.layer, path.head, path.destination)
      ? "Off in the model, with the losses that are shown. Click: on again."
      : "Click: switch it off in the model, and see its losses.",
  ]);
  return lines;
}
