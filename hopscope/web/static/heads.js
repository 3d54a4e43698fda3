// A role map for every head (the wall). One of them is shown large, and linked to the example.

import { item } from "./changes.js";
import { ofMap } from "./commands.js";
import { announce, button, choice, fill, h, hovered, mark, roving, write } from "./dom.js";
import { draw, onCell, picture } from "./heat.js";
import { Pane } from "./pane.js";
import { headOf } from "./maps.js";
import { everyHead, everyPath, hasHead, headName, headsOf } from "./paths.js";
import { headLit } from "./pointed.js";
import { chainOrder, digits, number, shortRole, waiting } from "./words.js";

const KINDS = [
  ["own", "own chain", "Attention to positions of the destination's own chain"],
  ["others", "others", "Attention to all other chains together"],
];

export function headsPane(state) {
  const pane = new Pane(state, "heads", "Heads", {
    drawing: () => state.maps && drawing(state),
    rows: () => numbers(state),
    command: () => state.maps && ofMap(state, state.kind, chosen(state)),
  });
  const wall = h("div", { class: "wall", role: "group", "aria-label": "Role maps, layer by layer" });
  const large = h("div", { class: "large" });
  pane.body.append(wall, large);
  const rove = roving(wall, () => [...wall.querySelectorAll(".map")]);
  let cells = [];
  let big = null;
  const rebuild = () => {
    for (const its of cells) its.leave(); // removed elements get no pointerleave event
    [cells, big] = [[], null];
    if (!state.maps) {
      fill(wall, h("p", { class: "quiet" }, waiting(state, "Role maps are being measured")));
      fill(large); // the old one is of another run
      return;
    }
    const { layers, heads } = state.maps;
    const used = headsOf(state.about);
    const across = heads === 1 ? Math.min(layers, 4) : heads;
    wall.style.setProperty("--across", across);
    wall.classList.toggle("many", heads > 4 || layers > 6);
    cells = everyHead(state.maps).map((its) => cell(state, its, used));
    const rows = [];
    for (let start = 0; start < cells.length; start += across)
      rows.unshift(cells.slice(start, start + across).map((its) => its.element));
    fill(wall, rows);
    rove.come();
    big = enlarged(state, large);
    update();
  };
  const update = () => {
    if (!cells.length) return;
    const order = chainOrder(state.maps.roles);
    for (const its of cells) its.show(state, order);
    big?.update();
  };
  pane.draws("about maps theme", rebuild);
  pane.draws("step off head kind spot example", update);
  pane.watch("point", () => {
    for (const its of cells) its.light(state.point);
  });
  pane.watch("hover", () => big?.row(state.example?.json.tokens[state.hover]?.role));
  pane.watch("kind about", () =>
    fill(
      pane.tools,
      choice("Attention to", KINDS, state.kind, (kind) => state.set({ kind })),
    ),
  );
  return pane;
}

/** The shown head: the user's choice, or one of the circuit, or the first of the last layer. */
export function chosen(state) {
  const { circuit, model } = state.about;
  const found = item(state.head);
  if (found && hasHead(model, found)) return found;
  const all = circuit?.components ?? [];
  const last = all.findLast((its) => its.paths.length) ?? all.at(-1);
  return last ? { layer: last.layer, head: last.heads[0] } : { layer: model.layers - 1, head: 0 };
}

function cell(state, item, used) {
  const { layer, head } = item;
  const name = headName(item);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const enter = () => state.enter(item);
  const leave = () => state.leave(item);
  const choose = () => state.set({ head: state.head === name ? "" : name });
  const element = button([canvas, h("span", {}, name)], choose, {
    tabindex: "-1",
    class: `map${used.has(name) ? " used" : ""}`,
    data: { head: name, key: name },
    on: hovered(enter, leave),
  });
  return {
    element,
    leave,
    light(point) {
      element.classList.toggle("lit", headLit(point, layer, head));
    },
    show(its, order) {
      const matrix = its.maps.matrix(its.kind, its.at, item, order);
      draw(canvas, matrix, order.length, order.length);
      const off = its.isOff(layer, head);
      element.classList.toggle("off", off);
      const rows = its.off.flatMap((one) => (headName(one) === name ? one.destination : []));
      const gone = off ? ", switched off" : rows.length ? `, switched off at ${rows.join(", ")}` : "";
      const where = `${used.has(name) ? ", in the circuit" : ""}${gone}`;
      mark(element, {
        "aria-pressed": headName(chosen(its)) === name,
        "aria-label": `Head ${name}${where}: ${strongest(matrix, order, its.kind)}`,
      });
    },
  };
}

const whose = (kind) => (kind === "others" ? " of other chains" : "");

function strongest(matrix, order, kind) {
  let best = 0;
  matrix.forEach((share, n) => {
    if (share > matrix[best]) best = n;
  });
  const [destination, source] = [order[Math.floor(best / order.length)], order[best % order.length]];
  return `${destination} attends most to ${source}${whose(kind)}: ${number(matrix[best])}`;
}

/** One large map with named axes; the cell under the pointer is highlighted in the example. */
function enlarged(state, place) {
  const order = chainOrder(state.maps.roles);
  const n = order.length;
  const canvas = h("canvas", { class: "heat", "aria-hidden": "true" });
  const said = h("p", { class: "readout" });
  const title = h("h3", {});
  const tokens = h("canvas", { class: "heat tokens" });
  const caption = h("figcaption", {});
  const off = button("", () => state.toggle(chosen(state)), { class: "plain" });
  const spotAt = ([row, column]) => ({ destination: order[row], source: order[column] });
  onCell(canvas, () => n, (at) => state.set({ spot: at && spotAt(at) }, "none"));
  const size = () => state.example?.json.tokens.length ?? 0;
  onCell(tokens, size, (pair) => state.set({ pair }, "none"));
  const usual = () => (state.off.length ? ", with nothing off" : "");
  const told = ({ destination, source }) => {
    const share = state.maps.of(state.at, { ...chosen(state), destination, source }, state.kind);
    return `${destination} attends to ${source}${whose(state.kind)}: ${number(share)}${usual()}`;
  };
  const named = (axis) => h("div", { class: axis }, order.map((role) => h("span", { title: role }, shortRole(role))));
  const grid = h("div", { class: "axes", tabindex: "0", role: "group", style: { "--roles": n } });
  grid.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const now = state.spot ? [order.indexOf(state.spot.destination), order.indexOf(state.spot.source)] : [0, -1];
    const at = spotAt(now.map((its, axis) => Math.min(n - 1, Math.max(0, its + move[axis]))));
    state.set({ spot: at }, "none");
    announce(told(at));
  });
  grid.append(
    h("span", { class: "is-read" }, "source →"),
    h("span", { class: "reads" }, "destination →"),
    named("columns"),
    named("rows"),
    h("div", { class: "field" }, canvas, h("i", { class: "spot", hidden: true })),
  );
  const ring = grid.querySelector(".spot");
  fill(
    place,
    h("div", { class: "top" }, title, off),
    said,
    h("div", { class: "pair" }, grid, h("figure", {}, tokens, caption)),
  );
  const names = [...grid.querySelectorAll(".rows span, .columns span")];
  return {
    /** Highlight the row and the column of a role. */
    row(role) {
      names.forEach((its, n) => {
        its.classList.toggle("lit", order[n % order.length] === role);
      });
    },
    update() {
      const head = chosen(state);
      const name = headName(head);
      const { at, maps } = state;
      const matrix = maps.matrix(state.kind, at, head, order);
      write(title, `Head ${name}`);
      const gone = state.isOff(head.layer, head.head);
      write(off, gone ? "switch on" : "switch off");
      mark(off, { "aria-pressed": gone });
      draw(canvas, matrix, n, n);
      mark(grid, { "aria-label": `Map of head ${name}; arrow keys move` });
      const changes = state.off.filter((its) => headName(its) === name);
      canvas.classList.toggle("old", changes.length > 0);
      ring.hidden = !state.spot;
      if (state.spot) {
        const { destination, source } = state.spot;
        ring.style.setProperty("--row", order.indexOf(destination));
        ring.style.setProperty("--column", order.indexOf(source));
        write(said, told(state.spot));
      } else if (changes.length) {
        const told = changes.map(({ destination, as }) => `${destination || "all roles"} (${as})`).join(", ");
        write(said, `Switched off: ${told}. The map is of the model with nothing off.`);
      } else {
        const rows = order.map((role) => [role, ...maps.beside(at, head, role)]);
        const [role, itself, previous] = rows.reduce((one, other) =>
          Math.max(...other.slice(1)) > Math.max(...one.slice(1)) ? other : one,
        );
        const most = Math.max(itself, previous);
        const where = itself > previous ? "itself" : "the position before";
        const told = strongest(matrix, order, state.kind);
        const beside = most > 0.5 && !told.startsWith(`${role} attends most to ${role}:`) ? `; ${role} gives ${number(most)} to ${where}` : "";
        write(said, told + beside + usual());
      }
      const found = state.example?.attention;
      tokens.parentElement.hidden = !found;
      if (found) {
        const { size, shares } = headOf(found, head);
        draw(tokens, shares, size, size);
        write(caption, `in this example${state.example.json.changes ? ", with what is off" : ""}`);
      }
    },
  };
}

function drawing({ maps, kind, at }) {
  const order = chainOrder(maps.roles);
  const all = everyHead(maps).map((its) => {
    const matrix = maps.matrix(kind, at, its, order);
    return { name: headName(its), matrix, across: its.head, down: maps.layers - 1 - its.layer };
  });
  return picture(all, order.length, order.length, 12);
}

function numbers({ maps, at }) {
  return (maps ? everyPath(maps) : []).map((path) => ({
    head: headName(path),
    destination: path.destination,
    source: path.source,
    "own chain": digits(maps.of(at, path, "own")),
    "other chains": digits(maps.of(at, path, "others")),
  }));
}
