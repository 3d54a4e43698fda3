// Several seeds of one recipe, side by side: in which layer and head of each does one role read another?

import { fill, h, s, select } from "./dom.js";
import { draw, squares } from "./heat.js";
import { Maps } from "./maps.js";
import { Pane } from "./pane.js";
import { arrows } from "./paths.js";
import { chainOrder, number } from "./words.js";

export function fleetPane(state, source) {
  const pane = new Pane(state, "fleet", "Seeds", {
    drawing: () => picture(state),
    rows: () => numbers(state),
  });
  const place = h("div", { class: "seeds" });
  pane.body.append(place);
  pane.fits = (about) => Boolean(about.task) && (about.arrays ?? []).includes("fleet");
  state.watch("about", async () => {
    const { about } = state;
    if (!about || !pane.fits(about) || state.fleet?.run === about.id) return;
    fill(place, h("p", { class: "quiet" }, "Maps of every seed are being measured …"));
    try {
      const { tensors, about: words } = await source.arrays(about.id, "fleet", null);
      const arrays = Object.fromEntries(tensors);
      const maps = new Maps(
        { ...arrays, steps: arrays.seeds ?? { data: about.seeds } },
        words?.roles ?? about.task.roles,
      );
      if (state.run === about.id) state.set({ fleet: { run: about.id, maps, seeds: about.seeds } }, "none");
    } catch (error) {
      state.set({ error: { text: error.message, kind: "fleet" } }, "none");
    }
  });
  state.watch("about fleet reading seed theme", () => {
    if (state.fleet && state.about?.task) show(pane, state, place);
  });
  return pane;
}

/** The reading that is looked at: one that somebody chose, or the first of the circuit. */
function reading(state) {
  const first = arrows(state.about).at(-1);
  const roles = state.fleet.maps.roles;
  const text =
    state.reading ?? (first ? `${first.reader} ← ${first.source}` : `${roles.at(-1)} ← ${roles[0]}`);
  const [reader, source] = text.split(" ← ");
  return { text, reader, source };
}

/** Attention of every head [layer (last on top), head] of one seed along a reading. */
function of(maps, at, { reader, source }) {
  const found = new Float32Array(maps.layers * maps.heads);
  for (let layer = 0; layer < maps.layers; layer++)
    for (let head = 0; head < maps.heads; head++) {
      found[(maps.layers - 1 - layer) * maps.heads + head] = maps.of(at, { layer, head, reader, source });
    }
  return found;
}

function show(pane, state, place) {
  const { maps, seeds } = state.fleet;
  const roles = chainOrder(maps.roles);
  const its = reading(state);
  const all = roles.flatMap((reader) =>
    roles.filter((source) => source !== reader).map((source) => `${reader} ← ${source}`),
  );
  pane.hint(
    `attention along one path, layers upward, heads across; the same recipe from ${seeds.length} seeds`,
  );
  fill(
    pane.tools,
    select(
      "Which path",
      all.map((text) => [text, text]),
      its.text,
      (text) => state.set({ reading: text }, "none"),
    ),
  );
  fill(
    place,
    seeds.map((seed, at) => {
      const canvas = h("canvas", {
        "aria-hidden": "true",
        style: { "aspect-ratio": `${maps.heads} / ${maps.layers}` },
      });
      const matrix = of(maps, at, its);
      draw(canvas, matrix, maps.layers, maps.heads);
      const best = matrix.indexOf(Math.max(...matrix));
      const where = `${maps.layers - 1 - Math.floor(best / maps.heads)}.${best % maps.heads}`;
      return h(
        "button",
        {
          type: "button",
          class: "map used",
          "aria-pressed": String((state.seed ?? seeds[0]) === seed),
          "aria-label": `Seed ${seed}: strongest in head ${where}, ${number(matrix[best])}`,
          on: { click: () => state.set({ seed }) },
        },
        canvas,
        h("span", {}, `seed ${seed}`),
        h("small", {}, `${where} ${number(matrix[best])}`),
      );
    }),
  );
  const { name } = state.about;
  const seed = state.seed ?? seeds[0];
  pane.told(
    `hopscope maps ${name} --seed ${seed} --json`,
    `import hopscope\n` +
      `hopscope.load("${name}", seed=${seed}).maps().between("${its.reader}", "${its.source}")`,
  );
  pane.refreshNumbers();
}

function picture(state) {
  const { maps, seeds } = state.fleet;
  const size = 14;
  const wide = Math.max(56, maps.heads * size + 12);
  const made = s("svg", { viewBox: `0 0 ${seeds.length * wide + 12} ${maps.layers * size + 34}` });
  seeds.forEach((seed, at) =>
    made.append(
      squares(of(maps, at, reading(state)), maps.layers, maps.heads, size, 10 + at * wide, 22),
      s("text", { x: 10 + at * wide, y: 15 }, `seed ${seed}`),
    ),
  );
  return made;
}

function numbers(state) {
  if (!state.fleet) return { columns: [], rows: [] };
  const { maps, seeds } = state.fleet;
  const its = reading(state);
  const rows = [];
  seeds.forEach((seed, at) => {
    for (let layer = 0; layer < maps.layers; layer++)
      for (let head = 0; head < maps.heads; head++)
        rows.push([seed, `${layer}.${head}`, its.reader, its.source, maps.of(at, { layer, head, ...its })]);
  });
  return { columns: ["seed", "head", "reads", "is read", "attention"], rows };
}
