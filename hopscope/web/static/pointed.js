// Highlights what is pointed at in all panes: a head or one of its arrows, a hop, a chain.

/** Set `point` while the pointer or the focus is on this element. */
export function points(element, state, point) {
  element.addEventListener("pointerenter", () => state.enter(point));
  element.addEventListener("pointerleave", () => state.leave(point));
  return element;
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
