// Several seeds of one recipe side by side: in which heads of each does one role attend to another?

import { ofSeed } from "./commands.js";
import { button, fill, h, select } from "./dom.js";
import { plain } from "./fetched.js";
import { draw, picture } from "./heat.js";
import { Maps } from "./maps.js";
import { Pane } from "./pane.js";
import { arrows, everyHead, headName } from "./paths.js";
import { chainOrder, digits, number } from "./words.js";

export function fleetPane(state, live) {
  const pane = new Pane(state, "fleet", "Seeds", {
    drawing: () => state.fleet && drawing(state),
    rows: () => numbers(state),
    command: () => state.fleet && ofSeed(state.about, state.seed ?? state.fleet.seeds[0], shownPath(state)),
    fits: (about) => Boolean(about.task) && about.arrays.includes("fleet"),
  });
  const place = h("div", { class: "seeds" });
  pane.body.append(place);
  pane.watch("about", () => {
    const told = "Maps of every seed are being measured …";
    if (ask(state, live) && !state.fleet) fill(place, h("p", { class: "quiet" }, told));
  });
  pane.draws("about fleet path seed theme", () => state.fleet && show(pane, state, place));
  return pane;
}

/** Fetch the maps of every seed at the last checkpoint, and again if the run was trained further
 *  meanwhile. Returns true if it fetches. */
function ask(state, live) {
  const { about } = state;
  if (state.fleet?.key === keyOf(about) || live.open.fleet) return false;
  live.ask("fleet", async (signal) => {
    const its = await live.source.arrays(about.id, "fleet", null, { signal });
    const { seeds, ...arrays } = plain(its);
    const maps = new Maps({ ...arrays, steps: seeds }, its.about.roles);
    state.set({ fleet: { key: keyOf(about), maps, seeds: about.seeds } }, "none");
  }).then(() => state.fleet?.key === keyOf(about) && ask(state, live));
  return true;
}

/** The cache key of the maps: the run and its checkpoints. */
function keyOf({ id, checkpoints }) {
  return `${id} ${checkpoints}`;
}

/** The shown pair of roles: the user's choice, or the last path of the circuit. */
function shownPath(state) {
  const { roles } = state.fleet.maps;
  const first = arrows(state.about).at(-1) ?? { destination: roles.at(-1), source: roles[0] };
  const usual = `${first.source} → ${first.destination}`;
  const text = state.path || usual;
  const [source, destination] = text.split(" → ");
  return { text, destination, source };
}

/** Every head of one seed with its attention along a path, the last layer first. */
function along(maps, at, path) {
  return everyHead(maps)
    .sort((a, b) => b.layer - a.layer)
    .map((its) => ({ ...its, share: maps.of(at, { ...its, ...path }) }));
}

const sharesOf = (heads) => heads.map(({ share }) => share);

function show(pane, state, place) {
  const { maps, seeds } = state.fleet;
  const roles = chainOrder(maps.roles);
  const its = shownPath(state);
  const all = roles.flatMap((destination) =>
    roles.filter((source) => source !== destination).map((source) => `${source} → ${destination}`),
  );
  pane.hint(
    `attention along one path at the last checkpoint, layers upward, heads across; the same recipe from ${seeds.length} seeds`,
  );
  fill(
    pane.tools,
    select("Which path", all, its.text, (path) => state.set({ path })),
  );
  fill(
    place,
    seeds.map((seed, at) => {
      const canvas = h("canvas", {
        "aria-hidden": "true",
        style: { "aspect-ratio": `${maps.heads} / ${maps.layers}` },
      });
      const heads = along(maps, at, its);
      draw(canvas, sharesOf(heads), maps.layers, maps.heads);
      const best = heads.reduce((one, other) => (other.share > one.share ? other : one));
      const told = [headName(best), number(best.share)];
      const shown = [canvas, h("span", {}, `seed ${seed}`), h("small", {}, told.join(" "))];
      return button(shown, () => state.set({ seed }), {
        class: "map used",
        "aria-pressed": String((state.seed ?? seeds[0]) === seed),
        "aria-label": `Seed ${seed}: strongest in head ${told.join(", ")}`,
      });
    }),
  );
}

function drawing(state) {
  const { maps, seeds } = state.fleet;
  const all = seeds.map((seed, across) => {
    const matrix = sharesOf(along(maps, across, shownPath(state)));
    return { name: `seed ${seed}`, matrix, across, down: 0 };
  });
  return picture(all, maps.layers, maps.heads, 14);
}

function numbers(state) {
  if (!state.fleet) return [];
  const { maps, seeds } = state.fleet;
  const { destination, source } = shownPath(state);
  return seeds.flatMap((seed, at) =>
    everyHead(maps).map((its) => {
      const attention = digits(maps.of(at, { ...its, destination, source }));
      return { seed, head: headName(its), destination, source, attention };
    }),
  );
}
