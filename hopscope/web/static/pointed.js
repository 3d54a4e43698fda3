// Highlights what is pointed at in all panes: a head or one of its arrows, a hop, a chain.

import { s, switchable } from "./dom.js";

/** Set `point` while the pointer or the focus is on this element. */
export function points(element, state, point) {
  element.addEventListener("pointerenter", () => state.enter(point));
  element.addEventListener("pointerleave", () => state.leave(point));
  return element;
}

/** A tag that switches a head (with a destination: one row of it): a shape with a name, and a cross
 *  of size `arm` while it is off. Its tooltip has `lines`; pressing it toggles and chooses the
 *  head. The pointer may also be on `others`. */
export function tagOf(item, { name, place, shape, arm, lines, others = [], ...more }, { state, tip }) {
  const [x, y] = place.map((its) => its.toFixed(1));
  const tag = s(
    "g",
    { tabindex: "-1", role: "button", transform: `translate(${x} ${y})`, ...more },
    shape,
    s("text", { "text-anchor": "middle", "dominant-baseline": "central" }, name),
    s("path", { class: "cross", d: `M${-arm} ${arm}L${arm} ${-arm}` }),
  );
  const enter = () => {
    state.enter(item);
    tip.show(tag, lines);
  };
  const leave = () => {
    state.leave(item);
    tip.hide();
  };
  const press = () => {
    state.toggle(item);
    state.set({ head: `${item.layer}.${item.head}` }, "replace");
  };
  switchable(tag, [...others, tag], { enter, leave, press });
  return { tag, ...item };
}

/** Is this arrow pointed at: itself, its head, or the hop whose symbol it moves? */
export function pathLit(point, path, symbols = []) {
  if (!point) return false;
  if (point.hop) return path.carried.includes(symbols[point.hop]);
  if (!headLit(point, path.layer, path.head)) return false;
  return (
    (!point.destination || point.destination === path.destination) && (!point.source || point.source === path.source)
  );
}

/** Is this head pointed at? */
export function headLit(point, layer, head) {
  return Boolean(point) && point.layer === layer && point.head === head;
}

/** Is this token pointed at: its role or chain, or the value that answers the hop? */
export function tokenLit(point, { role, chain }) {
  if (!point) return false;
  if (point.hop) return role === `value ${point.hop - 1}` && (point.chain ?? chain) === chain;
  return Boolean(point.destination) && (role === point.destination || role === point.source);
}
