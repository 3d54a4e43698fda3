// The circuit: layers upward, roles across. An arrow leads from what is read to what reads it.
// Width: what is lost without it. How strongly it is drawn: its attention at this step.

import { choice, fill, h, mark, s, select, write } from "./dom.js";
import { arrow } from "./arrow.js";
import { chips } from "./chips.js";
import { ofSymbol } from "./colours.js";
import { Pane } from "./pane.js";
import { arrows, ghostOf, strong } from "./paths.js";
import { bent, colourBy, nodes } from "./strokes.js";
import { chainOrder, number, shortRole, symbolName, whole } from "./words.js";

const SIDE = 132;
const EDGE = 40;
const HEAD = 26;
const FEET = 34;

export function circuitPane(state, tip) {
  const pane = new Pane(state, "circuit", "Circuit", {
    drawing: () => pane.svg,
    rows: () => numbers(state, pane),
  });
  pane.words = () => state.about?.task && tell(pane, state);
  pane.verdict = h("p", { class: "verdict" });
  const place = h("div", { class: "drawing" });
  const below = h("div", { class: "below" });
  pane.body.append(pane.verdict, place, below);
  const rebuild = () => {
    if (state.about?.task) {
      build(pane, state, place, below, tip);
      update(pane, state);
      tip.check();
    }
  };
  new ResizeObserver(() => {
    if (place.clientWidth !== pane.width) rebuild();
  }).observe(place);
  state.watch("about maps contents fleet ghost colour theme", rebuild);
  state.watch("pane", () => {
    if (pane.alone !== (state.pane === "circuit")) rebuild();
  });
  state.watch("step off head busy", () => {
    if (!pane.svg) return;
    if (!state.about?.circuit) return rebuild();
    update(pane, state);
  });
  return pane;
}

function build(pane, state, place, below, tip) {
  const { about, maps } = state;
  const { layers, heads } = about.model;
  pane.width = place.clientWidth;
  pane.alone = state.pane === "circuit";
  const width = Math.max(pane.width, 300);
  const room = pane.alone ? innerHeight - 260 : Math.min(480, Math.max(340, innerHeight * 0.375));
  const found = about.circuit ? arrows(about) : maps ? strong(maps, state.at) : [];
  const side = Math.min(SIDE, 40 + 20 * heads);
  const levels = heights(layers, found, room - HEAD - FEET);
  const height = HEAD + levels.at(-1) + FEET;
  const roles = chainOrder(about.task.roles);
  const symbols = about.task.symbols ?? [];
  const step = (width - side - EDGE) / roles.length;
  const x = (role) => EDGE + step * (roles.indexOf(role) + 0.5);
  const y = (level) => HEAD + levels[layers] - (levels[Math.floor(level)] + levels[Math.ceil(level)]) / 2;
  const scene = { x, y, step, roles, layers, heads, symbols, width, side };
  pane.svg = s("svg", {
    class: "scene",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "group",
    "aria-label": "The circuit: paths and heads; each can be switched off",
  });
  pane.svg.append(streams(scene), labels(scene));
  const real = found.filter((its) => roles.includes(its.reader) && roles.includes(its.source));
  pane.svg.append(ghosts(ghostOf(about, state.ghost, maps, state.fleet), scene));
  pane.arrows = real.map((path) => arrow(path, real, { scene, state, tip }));
  const layer = s(
    "g",
    { class: "arrows" },
    pane.arrows.map((its) => its.group),
  );
  pane.nodes = nodes(scene, state);
  pane.svg.append(
    layer,
    pane.nodes.group,
    s(
      "g",
      { class: "labels" },
      pane.arrows.map((its) => its.label),
    ),
  );
  pane.whose = h("p", { class: "whose" });
  pane.chips = chips(scene, state, tip);
  pane.svg.append(pane.chips.group);
  write(pane.verdict, about.circuit?.verdict ?? "");
  fill(place, pane.svg);
  fill(below, pane.whose, key(state, symbols), tools(pane, state));
}

/** How high every level stands: layers in which nothing is read take less room. */
function heights(layers, paths, room) {
  const busy = Array.from({ length: layers }, (_, layer) => paths.some((its) => its.layer === layer));
  const weight = busy.map((its) => (its || layers <= 4 ? 1 : 0.4));
  const each = Math.min(132, Math.max(56, room / weight.reduce((a, b) => a + b, 0)));
  return weight.reduce((found, its) => [...found, found.at(-1) + each * its], [0]);
}

/** A thin line for every role: what the layers add to. */
function streams({ x, y, roles, layers, width, side }) {
  const made = s("g", { class: "streams" });
  for (const role of roles)
    made.append(s("line", { x1: x(role), x2: x(role), y1: y(0), y2: y(layers) - 14 }));
  for (let level = 0; level <= layers; level++)
    made.append(s("line", { class: "level", x1: EDGE - 8, x2: width - side, y1: y(level), y2: y(level) }));
  return made;
}

function labels({ x, y, roles, layers, step }) {
  const made = s("g", { class: "names" });
  for (const role of roles)
    made.append(
      s(
        "text",
        { class: "role", x: x(role), y: y(0) + 28, "text-anchor": "middle" },
        step < 58 ? shortRole(role) : role,
      ),
    );
  made.append(s("text", { class: "level", x: 4, y: y(0), "dominant-baseline": "central" }, "input"));
  for (let layer = 0; layer < layers; layer++)
    made.append(
      s(
        "text",
        { class: "level", x: 4, y: y(layer + 0.5), "dominant-baseline": "central" },
        `layer ${layer}`,
      ),
    );
  return made;
}

function ghosts(paths, scene) {
  return s(
    "g",
    { class: "ghost" },
    paths
      .filter(
        (its) =>
          scene.roles.includes(its.reader) && scene.roles.includes(its.source) && its.layer < scene.layers,
      )
      .map((path) => s("path", { d: bent(scene, path, 0).d, "stroke-opacity": 0.25 + 0.6 * path.share })),
  );
}

/** What changes while one scrubs or switches: strengths, crosses, names. */
function update(pane, state) {
  const { at, maps } = state;
  for (const { path, group, label } of pane.arrows) {
    const share = maps ? maps.of(at, path) : 1;
    const off = state.isOff(path.layer, path.head, path.reader);
    // Of strokes and fills: with an opacity of its own each arrow would be a picture of its own.
    const strength = (0.1 + 0.9 * Math.max(0.05, share)).toFixed(3);
    mark(group, { "stroke-opacity": strength, "fill-opacity": strength });
    group.classList.toggle("off", off);
    label.classList.toggle("off", off);
    label.classList.toggle("faint", share < 0.25);
    label.classList.toggle("chosen", state.head === `${path.layer}.${path.head}`);
    mark(label, { "aria-pressed": off });
  }
  for (const { chip, layer, head, name } of pane.chips.made) {
    const off = state.isOff(layer, head);
    chip.classList.toggle("off", off);
    chip.classList.toggle("chosen", state.head === name);
    mark(chip, { "aria-pressed": off, "aria-label": `Head ${name}${off ? ", switched off" : ""}` });
  }
  pane.nodes.update();
  write(pane.whose, whose(state));
  state.atRest(pane.words);
  pane.refreshNumbers();
}

/** The same in words: for those who only hear it, and the command. */
function tell(pane, state) {
  const { about, maps, at } = state;
  for (const { path, label } of pane.arrows) {
    const off = state.isOff(path.layer, path.head, path.reader);
    const share = number(maps ? maps.of(at, path) : 1);
    const told = `${path.layer}.${path.head} ${path.source} to ${path.reader}, attention ${share}`;
    mark(label, { "aria-label": off ? `${told}, switched off` : told });
  }
  pane.nodes.tell();
  pane.told(about.command.circuit, about.python.circuit);
}

/** Which weights the circuit was found in, beside those that are shown. */
function whose({ about, steps, at }) {
  if (!about.circuit) return "";
  const { circuit_step: found, name } = about;
  if (found === null)
    return `This circuit was found in none of these weights: \`hopscope discover ${name}\` finds it anew.`;
  const shown = steps[at] === found ? ", which is shown" : `; shown is step ${whole(steps[at])}`;
  return `This circuit was found at step ${whole(found)}${shown}.`;
}

function key(state, symbols) {
  const losses = state.about.circuit?.losses;
  const by = colourBy(state);
  const name = by === "emerged" ? " · colour: when it emerged" : " · dashed: routes later heads, or weak";
  const mean = (its) => number(its.reduce((a, b) => a + b, 0) / its.length);
  return h(
    "div",
    { class: "key-line" },
    h(
      "span",
      { class: "swatches" },
      symbols.map((its) =>
        h("span", {}, h("i", { style: { "--its": ofSymbol(symbols, its) } }), symbolName(its)),
      ),
    ),
    by === "emerged" ? h("span", { class: "moments" }) : null,
    h(
      "span",
      {},
      state.about.circuit
        ? `width: what is lost without it · strength: attention now${name}`
        : `no circuit yet: \`hopscope discover ${state.about.name}\` finds it; arrows are rows above 0.3`,
    ),
    state.about.theory
      ? h("span", {}, `layers needed: ${state.about.theory.layers}, here: ${state.about.model.layers}`)
      : null,
    losses
      ? h("span", {}, `loss ${mean(losses.model)} of the model, ${mean(losses.prescribed)} of the circuit`)
      : null,
  );
}

function tools(pane, state) {
  const { about } = state;
  const options = [["", "no ghost"]];
  if (about.planted?.length) options.push(["planted", "planted truth"]);
  if (about.theory) options.push(["theory", "theory's schedule"]);
  for (const step of state.steps ?? []) options.push([`step-${step}`, `step ${whole(step)}`]);
  for (const seed of (about.seeds ?? []).length > 1 ? about.seeds : [])
    options.push([`seed-${seed}`, `seed ${seed}`]);
  fill(
    pane.tools,
    select("Ghost behind the circuit", options, state.ghost, (ghost) => state.set({ ghost })),
    about.circuit?.account && Object.keys(about.emerged ?? {}).length
      ? choice(
          "Colour of arrows",
          [
            ["moves", "moves"],
            ["emerged", "emerged"],
          ],
          colourBy(state),
          (colour) => state.set({ colour }),
        )
      : null,
  );
  return null;
}

function numbers(state, pane) {
  return {
    columns: [
      "head",
      "source",
      "destination",
      "kind",
      "attention",
      "lost without it",
      "lost, computed attention",
      "emerged at step",
      "off",
    ],
    rows: (pane.arrows ?? []).map(({ path }) => [
      `${path.layer}.${path.head}`,
      path.source,
      path.reader,
      path.kind,
      state.maps ? state.maps.of(state.at, path) : "",
      path.component?.lost?.mean ?? "",
      path.component?.lost_computed?.mean ?? "",
      path.emerged ?? "",
      state.isOff(path.layer, path.head, path.reader) ? "off" : "",
    ]),
  };
}
