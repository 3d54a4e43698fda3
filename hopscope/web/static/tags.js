// What can be switched off in the circuit: an arrow for each path, a box for each head of a component
// without paths, and a disc for each head.

import { named } from "./changes.js";
import { box, label, s, switchable } from "./dom.js";
import { headName, headsOf, loose, lostOf } from "./paths.js";
import { bent, ribbons, strokesOf } from "./strokes.js";
import { KINDS, number, percent, symbolName, whole } from "./words.js";

const [THIN, THICK] = [1.6, 11];
const ASIDE = 17;
const EACH = 21; // distance between the middles of two boxes
const SMALLEST = 6; // the least size of a disc with its margin, so that it can be clicked

/** A tag that switches a head (with a destination: one row of it): a shape with a name, and a cross
 *  of size `arm` while it is off. Its tooltip has `lines()`, and the text of `hints` for whether it
 *  is off; pressing it toggles and chooses the head. The pointer may also be on `others`. */
function tagOf(item, { name, place, shape, arm, lines, hints, others = [], data, ...more }, { state, tip }) {
  const [x, y] = place.map((its) => its.toFixed(1));
  const props = { transform: `translate(${x} ${y})`, data: { item: named(item), ...data }, ...more };
  const tag = s(
    "g",
    { tabindex: "-1", role: "button", ...props },
    shape,
    label(0, 0, name, { "text-anchor": "middle", "dominant-baseline": "central" }),
    s("path", { class: "cross", d: `M${-arm} ${arm}L${arm} ${-arm}` }),
  );
  const [whenOff, whenOn] = hints;
  const told = () => [...lines(), [state.isOff(item.layer, item.head, item.destination) ? whenOff : whenOn]];
  const enter = () => {
    state.enter(item);
    tip.show(tag, told);
  };
  const leave = () => {
    state.leave(item);
    tip.hide();
  };
  const press = () => {
    state.toggle(item);
    state.set({ head: headName(item) }, "replace");
  };
  switchable(tag, [...others, tag], { enter, leave, press });
  return { tag, ...item };
}

/** Draw each path as an arrow with its name; parallel arrows are spread. */
export function drawnPaths(paths, { scene, state, tip }) {
  return paths.map((path) => {
    const { layer, head, destination, source } = path;
    const alike = paths.filter(
      (its) => its.layer === layer && its.destination === destination && its.source === source,
    );
    const near = alike.indexOf(path) - (alike.length - 1) / 2;
    const lost = path.component ? (lostOf(path.component)?.mean ?? 0) : 0.3;
    const size = THIN + (THICK - THIN) * Math.min(1, Math.max(0, lost));
    const curve = bent(scene, path, near * Math.max(20, size + 9));
    const at = curve.at(0.5 - 0.17 * near);
    const group = s("g", { class: "arrow" }, ribbons(curve, size, strokesOf(path, state)));
    const made = {
      class: "tag",
      data: { path: path.key, key: path.key },
      name: headName(path),
      place: at,
      shape: s("circle", { class: "disc", r: 10.5 }),
      arm: 7,
      others: [group],
      lines: () => told(path, state),
      hints: [
        "Off in the model, with the losses that are shown. Click: on again.",
        "Click: switch it off in the model, and see its losses.",
      ],
    };
    return { path, group, at, ...tagOf({ layer, head, destination, source }, made, { state, tip }) };
  });
}

/** What an arrow's tooltip says about its path. */
function told(path, state) {
  const { layer, component, emerged, carried, routed } = path;
  const lines = [[`${headName(path)}  ${path.source} → ${path.destination}`]];
  if (state.maps) lines.push([`attention here${state.off.length ? ", with nothing off" : ""}`, number(state.maps.of(state.at, path))]);
  if (!component) return lines;
  const { kind, heads } = component;
  if (kind) lines.push(["kind", KINDS[kind]]);
  const lost = lostOf(component);
  const what = heads.length > 1 ? `heads ${heads.map((head) => headName({ layer, head })).join(", ")}` : "it";
  if (lost)
    lines.push([`the circuit loses without ${what}`, `${percent(lost.mean)} ± ${percent(lost.mean - lost.low)}`]);
  const own = component.sharing.find((its) => its.head[1] === path.head);
  if (own) {
    lines.push(["the model loses without this head", percent(own.lost.mean)]);
    lines.push(["and gains with it alone of them", percent(own.gained.mean)]);
  }
  if (emerged !== null) lines.push(["attention passed one half", `step ${whole(emerged)}`]);
  if (carried.length) lines.push(["moves to the answer", carried.map(symbolName).join(", ")]);
  if (routed.length) lines.push(["routes later heads by", routed.map(symbolName).join(", ")]);
  return lines;
}

/** What a component does, and what the circuit loses without it, in words. */
function effectOf(component) {
  const lost = lostOf(component);
  return [KINDS[component.kind], lost && `the circuit loses ${percent(lost.mean)} without it`].filter(Boolean);
}

/** A box for each head and role of a component without arrows (attention by position, to itself, or
 *  by a relation), next to the role; pressing it switches that row off. */
export function boxes(drawn, { scene: { x, y, roles }, state, tip }) {
  const taken = drawn.map(({ at }) => at);
  return loose(state.about).flatMap((component) =>
    component.heads.flatMap((head) =>
      component.destinations
        .filter((its) => roles.includes(its))
        .map((destination) => {
          const { layer, told: what } = component;
          const name = headName({ layer, head });
          const place = free([x(destination), y(layer + 0.5)], taken);
          taken.push(place);
          const made = {
            class: "tag loose",
            data: { key: `${name} ${what}` },
            "aria-label": `${name} ${what}`,
            name,
            place,
            shape: box(-10, -8.5, 20, 17, { class: "disc", rx: 3 }),
            arm: 6,
            lines: () => [[`${name}  ${what}`], effectOf(component)],
            hints: ["Switched off. Click: on again.", "Click: switch this row off."],
          };
          return tagOf({ layer, head, destination }, made, { state, tip });
        }),
    ),
  );
}

/** A place near this one that has no other tag. */
function free([left, top], taken) {
  const beside = [[ASIDE, 0], [ASIDE, EACH], [-ASIDE, 0], [ASIDE, -EACH], [-ASIDE, EACH], [ASIDE, 2 * EACH]];
  const places = beside.map(([aside, below]) => [left + aside, top + below]);
  const clear = ([a, b]) => taken.every(([c, d]) => Math.hypot(a - c, b - d) >= EACH - 1);
  return places.find(clear) ?? places[0];
}

/** A disc for each of these heads at the right, which switches the whole head off; in several rows if
 *  a layer has many. */
export function discs(all, { scene: { y, heads, width, side }, state, tip }) {
  const used = headsOf(state.about);
  const quiet = loose(state.about);
  const across = Math.min(heads, Math.floor((side - 18) / SMALLEST));
  const each = Math.min(20, (side - 18) / across);
  const radius = Math.min(9, each / 2 - 1);
  return all.map((item) => {
    const { layer, head } = item;
    const name = headName(item);
    const row = Math.floor(head / across) - (Math.ceil(heads / across) - 1) / 2;
    const does = quiet.filter((its) => its.layer === layer && its.heads.includes(head));
    const lines = () => [
      [`head ${name}`],
      ...does.map((its) => [its.told, effectOf(its).join(", ")]),
      ...(used.has(name) ? [] : [["The circuit does without it."]]),
    ];
    const made = {
      class: `chip${used.has(name) ? " used" : ""}`,
      data: { key: name },
      name: heads <= 8 ? String(head) : "",
      place: [width - side + 22 + each * (head % across), y(layer + 0.5) + each * row],
      shape: s("circle", { class: "disc", r: radius }),
      arm: (7 / 9) * radius,
      lines,
      hints: ["Switched off. Click: on again.", "Click: switch the whole head off."],
    };
    return tagOf(item, made, { state, tip });
  });
}
