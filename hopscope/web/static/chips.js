// A disc for every head, layer by layer, at the right of the circuit.

import { s } from "./dom.js";
import { headsOf, loose, lostOf } from "./paths.js";
import { tagOf } from "./pointed.js";
import { effectOf } from "./words.js";

const SMALLEST = 6; // the least size of a disc with its margin, so that it can be clicked

/** A disc for each head, which switches the whole head off; in several rows if there are many. */
export function chips({ y, layers, heads, width, side, shown = () => true }, state, tip) {
  const used = headsOf(state.about);
  const quiet = loose(state.about);
  const made = [];
  const group = s("g", { class: "chips" });
  group.append(s("text", { class: "level", x: width - side + 14, y: 11 }, heads > 1 ? "heads" : "head"));
  const across = Math.min(heads, Math.floor((side - 18) / SMALLEST));
  const rows = Math.ceil(heads / across);
  const each = Math.min(20, (side - 18) / across);
  const radius = Math.min(9, each / 2 - 1);
  const arm = (7 / 9) * radius;
  const place = (layer, head) => {
    const row = Math.floor(head / across) - (rows - 1) / 2;
    return [width - side + 22 + each * (head % across), y(layer + 0.5) + each * row];
  };
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads && shown(layer); head++) {
      const name = `${layer}.${head}`;
      const does = quiet.filter((its) => its.layer === layer && its.heads.includes(head));
      const lines = () =>
        [
          [`head ${name}`],
          ...does.map((its) => [its.told, effectOf(its, lostOf(its)).join(", ")]),
          used.has(name) ? null : ["The circuit does without it."],
          [state.isOff(layer, head) ? "Switched off. Click: on again." : "Click: switch the whole head off."],
        ].filter(Boolean);
      const drawn = {
        class: `chip${used.has(name) ? " used" : ""}`,
        data: { item: name, key: name },
        ...{ name: heads <= 8 ? String(head) : "", place: place(layer, head), arm, lines },
        shape: s("circle", { class: "disc", r: radius }),
      };
      made.push(tagOf({ layer, head }, drawn, { state, tip }));
      group.append(made.at(-1).tag);
    }
  return { group, made };
}
