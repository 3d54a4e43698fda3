// The circuit: layers upward, roles across. An arrow leads from what is read to what reads it.
// Width: what removing the path costs. How strongly it is drawn: its attention at this step.

import { choice, fill, h, s, select } from "./dom.js";
import { ofMoment, ofSymbol } from "./colours.js";
import { Pane } from "./pane.js";
import { arrows, ghostOf, headsOf, loose, strong } from "./paths.js";
import { bent, nodes, ribbons } from "./strokes.js";
import { chainOrder, number, shortRole, symbolName, whole } from "./words.js";

const THIN = 1.6, THICK = 11, SIDE = 132, EDGE = 40, HEAD = 26, FEET = 34;

export function circuitPane(state, tip) {
  const pane = new Pane(state, "circuit", "Circuit", { drawing: () => pane.svg, rows: () => numbers(state, pane) });
  const place = h("div", { class: "drawing" });
  const below = h("div", { class: "below" });
  pane.body.append(place, below);
  const rebuild = () => { if (state.about?.task) { build(pane, state, place, below, tip); update(pane, state); } };
  new ResizeObserver(() => { if (place.clientWidth !== pane.width) rebuild(); }).observe(place);
  state.watch("about maps contents fleet ghost colour theme", rebuild);
  state.watch("step off head busy", () => {
    if (!pane.svg) return;
    if (!state.about?.circuit) return rebuild();
    update(pane, state);
  });
  return pane;
}

function build(pane, state, place, below, tip) {
  const { about, maps } = state, { layers, heads } = about.model;
  pane.width = place.clientWidth;
  const width = Math.max(pane.width, 300), room = state.pane === "circuit" ? innerHeight - 260 : Math.min(480, Math.max(340, innerHeight * 0.375));
  const found = about.circuit ? arrows(about) : maps ? strong(maps, state.at) : [];
  const side = Math.min(SIDE, 40 + 20 * heads), levels = heights(layers, found, room - HEAD - FEET);
  const height = HEAD + levels.at(-1) + FEET;
  const roles = chainOrder(about.task.roles), symbols = about.task.symbols ?? [];
  const step = (width - side - EDGE) / roles.length;
  const x = (role) => EDGE + step * (roles.indexOf(role) + 0.5), y = (level) => HEAD + levels[layers] - (levels[Math.floor(level)] + levels[Math.ceil(level)]) / 2;
  const scene = { x, y, step, roles, layers, heads, symbols, width, side };
  pane.svg = s("svg", { class: "scene", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "The circuit: paths and heads; each can be switched off" });
  pane.svg.append(streams(scene), labels(scene));
  const real = found.filter((its) => roles.includes(its.reader) && roles.includes(its.source));
  pane.svg.append(ghosts(ghostOf(about, state.ghost, maps, state.fleet), scene));
  pane.arrows = real.map((path) => arrow(path, real, { scene, state, tip, about }));
  const layer = s("g", { class: "arrows" }, pane.arrows.map((its) => its.group));
  pane.nodes = nodes(scene, state);
  pane.svg.append(layer, pane.nodes.group, s("g", { class: "labels" }, pane.arrows.map((its) => its.label)));
  pane.chips = chips(scene, state, tip);
  pane.svg.append(pane.chips.group);
  fill(place, pane.svg);
  fill(below, key(state, symbols), tools(pane, state));
}

/** How high every level stands: layers in which nothing is read take less room. */
function heights(layers, paths, room) {
  const busy = Array.from({ length: layers }, (_, layer) => paths.some((its) => its.layer === layer));
  const weight = busy.map((its) => (its || layers <= 4 ? 1 : 0.4)), each = Math.min(132, Math.max(56, room / weight.reduce((a, b) => a + b, 0)));
  return weight.reduce((found, its) => [...found, found.at(-1) + each * its], [0]);
}

/** A thin line for every role: what the layers add to. */
function streams({ x, y, roles, layers, width, side }) {
  const made = s("g", { class: "streams" });
  for (const role of roles) made.append(s("line", { x1: x(role), x2: x(role), y1: y(0), y2: y(layers) - 14 }));
  for (let level = 0; level <= layers; level++) made.append(s("line", { class: "level", x1: EDGE - 8, x2: width - side, y1: y(level), y2: y(level) }));
  return made;
}

function labels({ x, y, roles, layers, step }) {
  const made = s("g", { class: "names" });
  for (const role of roles) made.append(s("text", { class: "role", x: x(role), y: y(0) + 28, "text-anchor": "middle" }, step < 58 ? shortRole(role) : role));
  made.append(s("text", { class: "level", x: 4, y: y(0), "dominant-baseline": "central" }, "input"));
  for (let layer = 0; layer < layers; layer++) made.append(s("text", { class: "level", x: 4, y: y(layer + 0.5), "dominant-baseline": "central" }, `layer ${layer}`));
  return made;
}

function ghosts(paths, scene) {
  return s("g", { class: "ghost" }, paths.filter((its) => scene.roles.includes(its.reader) && scene.roles.includes(its.source) && its.layer < scene.layers)
    .map((path) => s("path", { d: bent(scene, path, 0).d, "stroke-opacity": 0.25 + 0.6 * path.share })));
}

function arrow(path, all, { scene, state, tip, about }) {
  const alike = all.filter((its) => its.layer === path.layer && its.reader === path.reader && its.source === path.source);
  const near = alike.indexOf(path) - (alike.length - 1) / 2;
  const cost = path.part ? (path.kind === "carries" ? path.cost.mean : path.alone.mean) : 0.3;
  const guess = about.circuit?.losses.guess ?? 1;
  const size = THIN + (THICK - THIN) * Math.min(1, cost / guess);
  const curve = bent(scene, path, near * Math.max(20, size + 9)), middle = curve.at(0.5 - 0.17 * near);
  const group = s("g", { class: "arrow" }, ribbons(curve, size, strokesOf(path, state, about)));
  const item = { layer: path.layer, head: path.head, reader: path.reader };
  const seen = { path, group };
  const name = `${path.layer}.${path.head}`;
  seen.label = s("g", { class: "tag", tabindex: "0", role: "button", transform: `translate(${middle.map((its) => its.toFixed(1)).join(" ")})`, data: { item: `${name}:${path.reader}`, path: path.key } },
    s("circle", { r: 10.5 }), s("text", { "text-anchor": "middle", "dominant-baseline": "central" }, name), s("path", { class: "cross", d: "M-7 7L7 -7" }));
  const enter = () => { group.classList.add("hot"); state.under = item; tip.show(seen.label, told(path, state)); };
  const leave = () => { group.classList.remove("hot"); state.under = null; tip.hide(); };
  const press = () => { state.toggle(item); if (state.head !== name) state.set({ head: name }, "replace"); };
  for (const element of [group, seen.label]) {
    element.addEventListener("pointerenter", enter);
    element.addEventListener("pointerleave", leave);
    element.addEventListener("click", press);
  }
  seen.label.addEventListener("focus", enter);
  seen.label.addEventListener("blur", leave);
  seen.label.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); } });
  return seen;
}

/** Which colours an arrow has: what it carries, when it emerged, or what kind of part it is. */
function strokesOf(path, state, about) {
  const by = colourBy(state), symbols = about.task.symbols ?? [];
  if (by === "carries" && path.carried.length + path.told.length) {
    return [...path.carried.map((its) => ({ colour: ofSymbol(symbols, its) })), ...path.told.map((its) => ({ colour: ofSymbol(symbols, its), dashed: true }))];
  }
  if (by === "emerged") {
    const last = Math.max(...Object.values(about.emerged ?? {}).filter((its) => its !== null), 1);
    const first = Math.min(...Object.values(about.emerged ?? {}).filter((its) => its !== null), last);
    return [{ colour: path.emerged === null ? "var(--known)" : ofMoment((path.emerged - first) / (last - first || 1)), dashed: path.kind !== "carries" }];
  }
  return [{ colour: path.kind === "carries" ? "var(--accent)" : "var(--known)", dashed: path.kind !== "carries" && path.kind !== "seen" }];
}

export function colourBy(state) {
  return state.colour || (state.about.circuit?.account ? "carries" : Object.keys(state.about.emerged ?? {}).length ? "emerged" : "kind");
}

/** What there is to say about a path, line by line. */
function told(path, state) {
  const now = state.maps ? state.maps.of(state.at, path) : null, lines = [[`${path.layer}.${path.head}  ${path.reader} ← ${path.source}`]];
  if (now !== null) lines.push(["attention here", number(now)]);
  if (path.part) {
    lines.push(["loss without it, in the circuit", `${number(path.cost.mean)} ± ${number(path.cost.mean - path.cost.low)}`]);
    lines.push(["loss without it, in the model", `${number(path.alone.mean)} ± ${number(path.alone.mean - path.alone.low)}`]);
    if (path.emerged !== null) lines.push(["attention passed one half", `step ${whole(path.emerged)}`]);
    if (path.carried.length) lines.push(["carries to the answer", path.carried.map(symbolName).join(", ")]);
    if (path.told.length) lines.push(["tells later heads", path.told.map(symbolName).join(", ")]);
  }
  lines.push([state.isOff(path.layer, path.head, path.reader) ? "Switched off. Click: on again." : "Click: switch this path off."]);
  return lines;
}

/** All heads, layer by layer, at the right; each can be switched off as a whole. */
function chips({ y, layers, heads, width, side }, state, tip) {
  const used = headsOf(state.about), quiet = loose(state.about), made = [], group = s("g", { class: "chips" });
  group.append(s("text", { class: "level", x: width - side + 14, y: 11 }, heads > 1 ? "heads" : "head"));
  const each = Math.min(20, (side - 18) / heads);
  for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++) {
    const name = `${layer}.${head}`, does = quiet.filter((its) => its.layer === layer && its.head === head);
    const chip = s("g", { class: `chip${used.has(name) ? " used" : ""}`, tabindex: "0", role: "button", data: { item: name },
      transform: `translate(${width - side + 22 + each * head} ${y(layer + 0.5)})` },
      s("circle", { r: Math.min(9, each / 2 - 1) }), heads <= 8 ? s("text", { "text-anchor": "middle", "dominant-baseline": "central" }, String(head)) : null, s("path", { class: "cross", d: "M-7 7L7 -7" }));
    const lines = () => [[`head ${name}`], ...does.map((its) => [`${its.readers.length >= state.about.task.roles.length ? "every role" : its.readers.join(", ")} ← ${its.what}`, `${its.part.kind}, ${number(its.part.alone_cost.mean)} without it`]),
      used.has(name) ? null : ["The circuit does without it."], [state.isOff(layer, head) ? "Switched off. Click: on again." : "Click: switch the whole head off."]].filter(Boolean);
    const enter = () => { state.under = { layer, head }; tip.show(chip, lines()); }, leave = () => { state.under = null; tip.hide(); };
    const press = () => { state.toggle({ layer, head }); state.set({ head: name }, "replace"); };
    chip.addEventListener("pointerenter", enter); chip.addEventListener("pointerleave", leave);
    chip.addEventListener("focus", enter); chip.addEventListener("blur", leave); chip.addEventListener("click", press);
    chip.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); } });
    made.push({ chip, layer, head, name });
    group.append(chip);
  }
  return { group, made };
}

/** What changes while one scrubs or switches: strengths, crosses, names. */
function update(pane, state) {
  const { at, maps } = state;
  for (const { path, group, label } of pane.arrows ?? []) {
    const share = maps ? maps.of(at, path) : 1, off = state.isOff(path.layer, path.head, path.reader);
    group.style.setProperty("--share", Math.max(0.05, share).toFixed(3));
    group.classList.toggle("off", off);
    label.classList.toggle("off", off);
    label.classList.toggle("faint", share < 0.25);
    label.classList.toggle("chosen", state.head === `${path.layer}.${path.head}`);
    label.setAttribute("aria-pressed", String(off));
    label.setAttribute("aria-label", `${path.layer}.${path.head} ${path.reader} reads ${path.source}, attention ${number(share)}${off ? ", switched off" : ""}`);
  }
  for (const { chip, layer, head, name } of pane.chips.made) {
    const off = state.isOff(layer, head);
    chip.classList.toggle("off", off);
    chip.classList.toggle("chosen", state.head === name);
    chip.setAttribute("aria-pressed", String(off));
    chip.setAttribute("aria-label", `Head ${name}${off ? ", switched off" : ""}`);
  }
  pane.nodes.update();
  const run = state.about.name;
  pane.told(`hopscope ${state.about.command?.circuit?.replace(/^hopscope /, "") ?? `circuit show ${run}`}`, state.about.python?.circuit ?? `hopscope.load("${run}").circuit`);
  pane.refreshNumbers();
}

function key(state, symbols) {
  const losses = state.about.circuit?.losses, by = colourBy(state);
  const name = by === "carries" ? " · dashed: tells later heads where to look" : by === "emerged" ? " · colour: when it emerged" : " · dashed: tells later heads where to look";
  const mean = (its) => number(its.reduce((a, b) => a + b, 0) / its.length);
  return h("div", { class: "key-line" },
    h("span", { class: "swatches" }, symbols.map((its) => h("span", {}, h("i", { style: { "--its": ofSymbol(symbols, its) } }), symbolName(its)))),
    by === "emerged" ? h("span", { class: "moments" }) : null,
    h("span", {}, state.about.circuit ? `width: what removing it costs · strength: attention now${name}` : `no circuit yet: \`hopscope discover ${state.about.name}\` finds it; arrows are rows above 0.3`),
    state.about.theory ? h("span", {}, `layers needed: ${state.about.theory.layers}, here: ${state.about.model.layers}`) : null,
    losses ? h("span", {}, `loss ${mean(losses.clean)} as it is, ${mean(losses.ideal)} with this attention alone`) : null);
}

function tools(pane, state) {
  const { about } = state, options = [["", "no ghost"]];
  if (about.planted?.length) options.push(["planted", "planted truth"]);
  if (about.theory) options.push(["theory", "theory's schedule"]);
  for (const step of state.steps ?? []) options.push([`step-${step}`, `step ${whole(step)}`]);
  for (const seed of (about.seeds ?? []).length > 1 ? about.seeds : []) options.push([`seed-${seed}`, `seed ${seed}`]);
  fill(pane.tools, select("Ghost behind the circuit", options, state.ghost, (ghost) => state.set({ ghost })),
    about.circuit?.account && Object.keys(about.emerged ?? {}).length ? choice("Colour of arrows", [["carries", "carries"], ["emerged", "emerged"]], colourBy(state), (colour) => state.set({ colour })) : null);
  return null;
}

function numbers(state, pane) {
  return { columns: ["head", "reads", "is read", "kind", "attention", "loss without it", "in the model", "emerged at step", "off"],
    rows: (pane.arrows ?? []).map(({ path }) => [`${path.layer}.${path.head}`, path.reader, path.source, path.kind, state.maps ? state.maps.of(state.at, path) : "", path.cost?.mean ?? "", path.alone?.mean ?? "", path.emerged ?? "", state.isOff(path.layer, path.head, path.reader) ? "off" : ""]) };
}
