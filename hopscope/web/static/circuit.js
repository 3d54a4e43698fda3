// The circuit: layers upward, roles across. An arrow goes from source to destination. Its width is
// the loss of the circuit without it, its opacity the attention at this step.

import { box, choice, fill, h, label, mark, roving, rule, s, select, switchable, write, zoom } from "./dom.js";
import { ofCircuit } from "./commands.js";
import { chosen } from "./heads.js";
import { ofSymbol } from "./colours.js";
import { squaresOf } from "./maps.js";
import { Pane } from "./pane.js";
import { arrows, everyHead, ghostOf, headName, loose, lostOf, strong } from "./paths.js";
import { headLit, pathLit } from "./pointed.js";
import { bent, colourBy, nodes } from "./strokes.js";
import { boxes, discs, drawnPaths } from "./tags.js";
import { chainOrder, digits, lastAlone, number, shortRole, symbolName, whole } from "./words.js";

const SIDE = 132;
const EDGE = 40;
const HEAD = 26;
const FEET = 34;
const DEEP = 6; // models with more layers have layers without heads of the circuit folded
const FOLD = 44;

export function circuitPane(state, tip) {
  const pane = new Pane(state, "circuit", "Circuit", {
    drawing: () => pane.svg,
    rows: () => numbers(state, pane),
    command: () => ofCircuit(state),
  });
  pane.opened = new Set(); // folds that the user opened, by their first layer
  pane.verdict = h("p", { class: "verdict" });
  pane.reasons = h("ul", { class: "reasons" });
  const place = h("div", { class: "drawing" });
  const below = h("div", { class: "below" });
  pane.body.append(pane.verdict, pane.reasons, place, below);
  pane.rove = roving(place, () => [...place.querySelectorAll('[role="button"]')]);
  pane.rebuild = () => {
    build(pane, state, place, below, tip);
    update(pane, state);
    tell(pane, state);
    tip.check();
  };
  const { rebuild } = pane;
  state.watch("run", () => pane.opened.clear());
  pane.fills(place, rebuild);
  pane.draws("about maps fleet ghost colour theme pane", rebuild);
  pane.draws("contents unmeasured", () => {
    if (pane.nodes.squares === Boolean(state.contents)) update(pane, state);
    else rebuild();
  });
  pane.draws("step off head cut", () => {
    const hidden = state.off.some(({ layer }) => pane.folds.some(([low, high]) => low <= layer && layer <= high));
    if (!state.about.circuit || hidden) return rebuild();
    update(pane, state);
  });
  pane.watch("rested", () => tell(pane, state));
  pane.watch("point spot hover", () => light(pane, state));
  return pane;
}

/** Highlight what is pointed at, here or in another pane. */
function light(pane, state) {
  const { point, spot, hover } = state;
  const seen = spot ? { ...chosen(state), ...spot } : point;
  const { symbols } = state.about.task;
  for (const { path, group } of pane.arrows) group.classList.toggle("hot", pathLit(seen, path, symbols));
  for (const { tag, layer, head, destination } of [...pane.boxes, ...pane.discs])
    tag.classList.toggle("hot", headLit(seen, layer, head) && (!destination || (seen.destination ?? destination) === destination));
  const roles = [seen?.destination, seen?.source, state.example?.json.tokens[hover]?.role];
  for (const name of pane.names) name.classList.toggle("hot", roles.includes(name.dataset.role));
}

function build(pane, state, place, below, tip) {
  const { about, maps } = state;
  const { layers, heads } = about.model;
  const width = Math.max(pane.room, 300);
  const high = innerHeight / zoom();
  const room = state.pane === "circuit" ? high - 260 : Math.min(480, Math.max(340, high * 0.375));
  const found = about.circuit ? arrows(about) : maps ? strong(maps, state.at) : [];
  const side = Math.min(SIDE, 40 + 20 * heads);
  const busy = layersOf([...found, ...loose(about), ...state.off]);
  const folds = about.circuit && layers > DEEP ? foldsOf(layers, busy).filter(([low]) => !pane.opened.has(low)) : [];
  const levels = heights(layers, busy, folds, room - HEAD - FEET);
  const height = HEAD + levels.at(-1) + FEET;
  const roles = chainOrder(about.task.roles);
  const symbols = about.task.symbols ?? [];
  const step = (width - side - EDGE) / roles.length;
  const x = (role) => EDGE + step * (roles.indexOf(role) + 0.5);
  const y = (level) => HEAD + levels[layers] - (levels[Math.floor(level)] + levels[Math.ceil(level)]) / 2;
  const shown = (layer) => !folds.some(([low, high]) => low <= layer && layer <= high);
  const drawn = (level) => !folds.some(([low, high]) => low < level && level <= high);
  const scene = { x, y, step, roles, layers, heads, symbols, width, side, shown, drawn };
  pane.svg = s("svg", {
    class: "scene",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "group",
    "aria-label": "The circuit: paths and heads; each can be switched off",
  });
  const named = labels(scene);
  pane.names = [...named.querySelectorAll(".role")];
  pane.svg.append(streams(scene), named);
  const drawable = (its) => roles.includes(its.destination) && roles.includes(its.source) && its.layer < layers;
  const real = found.filter(drawable);
  pane.svg.append(ghosts(ghostOf(about, state.ghost, maps, state.fleet).filter(drawable), scene));
  const around = { scene, state, tip };
  pane.arrows = drawnPaths(real, around);
  pane.boxes = boxes(pane.arrows, around);
  pane.discs = discs(everyHead(about.model).filter(({ layer }) => shown(layer)), around);
  pane.nodes = nodes(scene, state);
  const all = (name, tags, kind = "tag") => s("g", { class: name }, tags.map((its) => its[kind]));
  pane.svg.append(all("arrows", pane.arrows, "group"), pane.nodes.group, all("labels", pane.arrows));
  pane.svg.append(all("loose", pane.boxes), all("chips", pane.discs), ...foldLines(folds, scene, pane));
  pane.whose = h("p", { class: "whose" });
  pane.folds = folds;
  write(pane.verdict, about.circuit?.verdict ?? "");
  fill(pane.reasons, ...(about.circuit?.reasons ?? []).map((line) => h("li", {}, line)));
  fill(place, pane.svg);
  pane.rove.come();
  fill(below, pane.whose, key(state, symbols));
  tools(pane, state);
}

const layersOf = (all) => new Set(all.map(({ layer }) => layer));

/** Runs of two or more layers, [first, last], without heads of the circuit. */
function foldsOf(layers, busy) {
  const found = [];
  for (let low = 0; low < layers; low++) {
    let high = low;
    while (high < layers && !busy.has(high)) high++;
    if (high - low > 1) found.push([low, high - 1]);
    low = high;
  }
  return found;
}

/** The height of every level: layers without heads of the circuit take less room, and a fold of
 *  layers takes one line. */
function heights(layers, busy, folds, room) {
  const folded = (layer) => folds.find(([low, high]) => low <= layer && layer <= high);
  const weight = Array.from({ length: layers }, (_, layer) =>
    folded(layer) ? 0 : busy.has(layer) || layers <= 4 ? 1 : 0.4,
  );
  const sum = weight.reduce((a, b) => a + b, 0) || 1;
  const each = Math.min(132, Math.max(layers > 12 ? 56 : 38, (room - FOLD * folds.length) / sum));
  const high = (layer) => (folded(layer)?.[0] === layer ? FOLD : each * weight[layer]);
  return weight.reduce((found, _, layer) => [...found, found.at(-1) + high(layer)], [0]);
}

/** A line for each fold of layers; pressing it shows the layers. */
function foldLines(folds, { x, y, roles, width, side }, pane) {
  return folds.map(([low, high]) => {
    const told = `${low}–${high}: nothing of the circuit`;
    const made = s(
      "g",
      { class: "fold", tabindex: "-1", role: "button", "aria-label": `Layers ${told}. Show them`, data: { key: `fold ${low}` } },
      box(0, y(high + 1) + 11, width - side, FOLD - 22, { rx: 6 }),
      label(x(roles[0]) - 10, y(low) - FOLD / 2, `layers ${told} ▸`, { "dominant-baseline": "central" }),
    );
    const press = () => {
      pane.opened.add(low);
      pane.rebuild();
    };
    switchable(made, [made], { enter() {}, leave() {}, press });
    return made;
  });
}

/** A thin line for the residual stream of every role. */
function streams({ x, y, roles, layers, width, side, drawn }) {
  const made = s("g", { class: "streams" });
  for (const role of roles) made.append(rule(x(role), y(0), x(role), y(layers) - 14));
  for (let level = 0; level <= layers; level++)
    if (drawn(level)) made.append(rule(EDGE - 8, y(level), width - side, y(level), { class: "level" }));
  return made;
}

function labels({ x, y, roles, layers, heads, step, width, side, shown }) {
  const level = { class: "level", "dominant-baseline": "central" };
  const named = roles.map((role) => {
    const props = { class: "role", "text-anchor": "middle", data: { role } };
    return label(x(role), y(0) + 28, step < 58 ? shortRole(role) : role, props);
  });
  const layered = Array.from({ length: layers }, (_, layer) =>
    shown(layer) ? label(4, y(layer + 0.5), `layer ${layer}`, level) : null,
  );
  const right = label(width - side + 14, 11, heads > 1 ? "heads" : "head", { class: "level" });
  return s("g", { class: "names" }, named, label(4, y(0) + 7, "input", level), layered, right);
}

function ghosts(paths, scene) {
  return s(
    "g",
    { class: "ghost" },
    paths.map((path) => s("path", { d: bent(scene, path, 0).d, "stroke-opacity": 0.25 + 0.6 * path.share })),
  );
}

/** Update what changes with the step and with switches: opacities, crosses, squares. */
function update(pane, state) {
  const { at, maps } = state;
  for (const { tag, layer, head, destination } of [...pane.arrows, ...pane.boxes, ...pane.discs]) {
    const off = state.isOff(layer, head, destination);
    tag.classList.toggle("off", off);
    tag.classList.toggle("chosen", state.head === `${layer}.${head}`);
    mark(tag, { "aria-pressed": off });
  }
  for (const { path, group, tag } of pane.arrows) {
    const share = maps ? maps.of(at, path) : 0.5; // 0.5 until it is measured
    // The opacity of strokes and fills, because `opacity` would make each arrow a layer of its own.
    const strength = (0.1 + 0.9 * Math.max(0.05, share)).toFixed(3);
    mark(group, { "stroke-opacity": strength, "fill-opacity": strength });
    group.classList.toggle("off", tag.classList.contains("off"));
    tag.classList.toggle("faint", share < 0.25);
  }
  pane.nodes.update();
  write(pane.whose, whose(state));
}

/** Write the labels for screen readers and the tooltips of the squares. */
function tell(pane, { at, maps }) {
  const name = (tag, text) => mark(tag, { "aria-label": tag.classList.contains("off") ? `${text}, switched off` : text });
  for (const { path, tag } of pane.arrows) {
    const now = maps ? `attention ${number(maps.of(at, path))}` : "attention not measured yet";
    name(tag, `${headName(path)} ${path.source} to ${path.destination}, ${now}`);
  }
  for (const { tag, ...its } of pane.discs) name(tag, `Head ${headName(its)}`);
  pane.nodes.tell();
}

/** The line that says in which weights the circuit was found, and which are shown. */
function whose(state) {
  const { about, steps, at, off, contents, unmeasured } = state;
  if (unmeasured) return `Squares cannot be measured: ${unmeasured}`;
  if (off.length && contents) return ofSquares(state);
  if (contents && !contents.has(at)) return "Squares of this step are being measured …";
  if (!about.circuit) return "";
  const { circuit_step: found, name } = about;
  if (found === null)
    return `This circuit was found in none of these weights: \`hopscope circuit ${name}\` finds it anew.`;
  if (steps.length === 1) return "This circuit was found in these weights.";
  const shown = steps[at] === found ? ", which is shown" : `; shown is step ${whole(steps[at])}`;
  return `This circuit was found at step ${whole(found)}${shown}.`;
}

/** The line that says which model the squares show while something is off. */
function ofSquares(state) {
  const { old, why } = squaresOf(state);
  if (!old) return "Squares: the changed model, by the maps fitted on the unchanged one.";
  const reason = state.alive ? why || "the changed one is being measured …" : "a saved page cannot measure the changed one";
  return `Squares: the unchanged model; ${reason}`;
}

function key(state, symbols) {
  const losses = state.about.circuit?.losses;
  const by = colourBy(state);
  const grey = { emerged: "never emerged", moves: `${symbolName(symbols[0] ?? "")} or weak`, kind: "weak" }[by];
  const name = `${by === "emerged" ? " · colour: when it emerged" : ""} · dashed: routes later heads · grey: ${grey}`;
  const moments = Object.values(state.about.emerged ?? {}).filter((step) => step !== null);
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
    by === "emerged" && moments.length
      ? h("span", {}, `step ${whole(Math.min(...moments))} `, h("span", { class: "moments" }), ` ${whole(Math.max(...moments))}`)
      : null,
    h(
      "span",
      {},
      state.about.circuit
        ? `width: what the circuit loses without it · strength: attention now${name} · box: no arrow, point at it`
        : `no circuit yet: \`${ofCircuit(state).shell || "study.discover()"}\` finds it once the task is learned; arrows are rows above 0.3`,
    ),
    state.about.theory
      ? h("span", {}, `layers needed: ${state.about.theory.layers}, here: ${state.about.model.layers}`)
      : null,
    losses
      ? h(
          "span",
          {},
          `on fresh examples${lastAlone(state.about)}: loss ${mean(losses.model)} of the model, ` +
            `${mean(losses.prescribed)} of the circuit with prescribed attention` +
            (losses.computed ? `, ${mean(losses.computed)} with computed attention` : ""),
        )
      : null,
  );
}

function tools(pane, state) {
  const { about } = state;
  const options = [["", "compare with …"]];
  if (about.planted?.length) options.push(["planted", "what was planted"]);
  if (about.theory) options.push(["theory", "theory's schedule"]);
  if (state.steps.length > 1) options.push(...state.steps.map((step) => [`step-${step}`, `step ${whole(step)}`]));
  for (const seed of (about.seeds ?? []).length > 1 ? about.seeds : [])
    options.push([`seed-${seed}`, `seed ${seed}`]);
  fill(
    pane.tools,
    options.length > 1
      ? select("Compare the circuit with", options, state.ghost, (ghost) => state.set({ ghost }))
      : null,
    about.circuit?.account && Object.keys(about.emerged ?? {}).length
      ? choice("Colour of arrows", ["moves", "emerged"], colourBy(state), (colour) => state.set({ colour }))
      : null,
  );
}

function numbers(state, pane) {
  return (pane.arrows ?? []).map(({ path }) => ({
    head: headName(path),
    source: path.source,
    destination: path.destination,
    kind: path.kind,
    attention: state.maps ? digits(state.maps.of(state.at, path)) : "",
    "the circuit loses without it": (path.component && lostOf(path.component)?.mean) ?? "",
    "with prescribed attention": path.component?.lost?.mean ?? "",
    "emerged at step": path.emerged ?? "",
    off: state.isOff(path.layer, path.head, path.destination) ? "off" : "",
  }));
}
