// One arrow of the circuit: a path with its name, what is told about it, and the switch that it is.

import { s, switchable } from "./dom.js";
import { bent, ribbons, strokesOf } from "./strokes.js";
import { lostOf } from "./paths.js";
import { KINDS, number, percent, symbolName, whole } from "./words.js";

const THIN = 1.6;
const THICK = 11;

/** A path as an arrow with its name; `all` are the others, beside which it has to pass. */
export function arrow(path, all, { scene, state, tip }) {
  const alike = all.filter(
    (its) => its.layer === path.layer && its.reader === path.reader && its.source === path.source,
  );
  const near = alike.indexOf(path) - (alike.length - 1) / 2;
  const lost = path.component ? (lostOf(path.component)?.mean ?? 0) : 0.3;
  const size = THIN + (THICK - THIN) * Math.min(1, Math.max(0, lost));
  const curve = bent(scene, path, near * Math.max(20, size + 9));
  const middle = curve.at(0.5 - 0.17 * near);
  const group = s("g", { class: "arrow" }, ribbons(curve, size, strokesOf(path, state)));
  const item = { layer: path.layer, head: path.head, reader: path.reader };
  const seen = { path, group };
  const name = `${path.layer}.${path.head}`;
  seen.label = s(
    "g",
    {
      class: "tag",
      tabindex: "0",
      role: "button",
      transform: `translate(${middle.map((its) => its.toFixed(1)).join(" ")})`,
      data: { item: `${name}:${path.reader}`, path: path.key, key: path.key },
    },
    s("circle", { r: 10.5 }),
    s("text", { "text-anchor": "middle", "dominant-baseline": "central" }, name),
    s("path", { class: "cross", d: "M-7 7L7 -7" }),
  );
  const enter = () => {
    group.classList.add("hot");
    state.under = item;
    tip.show(seen.label, () => told(path, state));
  };
  const leave = () => {
    group.classList.remove("hot");
    state.leave(item);
    tip.hide();
  };
  const press = () => {
    state.toggle(item);
    if (state.head !== name) state.set({ head: name }, "replace");
  };
  switchable(seen.label, [group, seen.label], { enter, leave, press });
  return seen;
}

/** What there is to say about a path, line by line. */
function told(path, state) {
  const now = state.maps ? state.maps.of(state.at, path) : null;
  const lines = [[`${path.layer}.${path.head}  ${path.source} → ${path.reader}`]];
  if (now !== null) lines.push(["attention here", number(now)]);
  if (path.component) {
    const { kind, lost, lost_computed: computed, paths } = path.component;
    if (kind) lines.push(["kind", KINDS[kind]]);
    const what = paths.length > 1 ? `all ${paths.length} arrows of this component` : "it";
    for (const [attention, its] of [
      ["prescribed", lost],
      ["computed", computed],
    ])
      if (its)
        lines.push([
          `lost without ${what}, ${attention} attention`,
          `${percent(its.mean)} ± ${percent(its.mean - its.low)}`,
        ]);
    if (path.emerged !== null) lines.push(["attention passed one half", `step ${whole(path.emerged)}`]);
    if (path.carried.length) lines.push(["moves to the answer", path.carried.map(symbolName).join(", ")]);
    if (path.told.length) lines.push(["routes later heads by", path.told.map(symbolName).join(", ")]);
  }
  lines.push([
    state.isOff(path.layer, path.head, path.reader)
      ? "Switched off. Click: on again."
      : "Click: switch this path off.",
  ]);
  return lines;
}
