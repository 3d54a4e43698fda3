// Components of the circuit without an arrow: heads that attend by position, to the previous
// position, or by a relation. Each is drawn as a tag next to its destination role.

import { s } from "./dom.js";
import { loose, lostOf } from "./paths.js";
import { tagOf } from "./pointed.js";
import { effectOf } from "./words.js";

const ASIDE = 17;
const EACH = 21; // distance between the middles of two tags

/** A tag for each head and role of such a component, which switches that row off. */
export function looseTags({ x, y, roles }, arrows, state, tip) {
  const made = [];
  const taken = arrows.map(({ at }) => at);
  const group = s("g", { class: "loose" });
  for (const component of loose(state.about))
    for (const head of component.heads)
      for (const destination of component.destinations.filter((its) => roles.includes(its))) {
        const { layer } = component;
        const at = free([x(destination), y(layer + 0.5)], taken);
        taken.push(at);
        made.push(tagged({ layer, head, destination }, component, at, { state, tip }));
        group.append(made.at(-1).tag);
      }
  return { group, made };
}

/** A place near this one that has no other tag. */
function free([left, top], taken) {
  const beside = [[ASIDE, 0], [ASIDE, EACH], [-ASIDE, 0], [ASIDE, -EACH], [-ASIDE, EACH], [ASIDE, 2 * EACH]];
  const places = beside.map(([aside, below]) => [left + aside, top + below]);
  const clear = ([a, b]) => taken.every(([c, d]) => Math.hypot(a - c, b - d) >= EACH - 1);
  return places.find(clear) ?? places[0];
}

function tagged(item, component, place, { state, tip }) {
  const { layer, head, destination } = item;
  const name = `${layer}.${head}`;
  const lines = () => [
    [`${name}  ${component.told}`],
    effectOf(component, lostOf(component)),
    [state.isOff(layer, head, destination) ? "Switched off. Click: on again." : "Click: switch this row off."],
  ];
  const shape = s("rect", { class: "disc", x: -10, y: -8.5, width: 20, height: 17, rx: 3 });
  const more = {
    class: "tag loose",
    data: { item: `${name}:${destination}`, key: `${name} ${component.told}` },
    "aria-label": `${name} ${component.told}`,
  };
  return tagOf(item, { name, place, shape, arm: 6, lines, ...more }, { state, tip });
}
