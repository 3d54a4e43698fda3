// One example: its tokens as chips, the attention of one head as arcs over them, and its answers.

import { ofExample } from "./commands.js";
import { able, announce, box, button, fill, h, hovered, icon, label, roving, s, write, zoom } from "./dom.js";
import { ofToken } from "./colours.js";
import { taskLine } from "./explained.js";
import { chosen } from "./heads.js";
import { headOf } from "./maps.js";
import { Pane } from "./pane.js";
import { headName } from "./paths.js";
import { tokenLit } from "./pointed.js";
import { lastExample } from "./url.js";
import { digits, number, shortRole, waiting } from "./words.js";

const LEAST = 0.06;
const [LEAST_WIDE, GAP, ROW] = [30, 3, 88]; // pixels: token width, gap, height of a row with arcs

export function examplePane(state) {
  const pane = new Pane(state, "example", "Example", {
    drawing: () => drawing(state, pane),
    rows: () => numbers(state),
    command: () => ofExample(state, chosen(state)),
  });
  const strip = h("div", { class: "strip" });
  const arcs = s("svg", { class: "arcs", "aria-hidden": "true" });
  const chips = h("ol", { class: "tokens" });
  const wait = h("p", { class: "quiet" });
  strip.append(arcs, chips, wait);
  pane.body.append(taskLine(state), strip);
  Object.assign(pane, { strip, arcs, chips, buttons: toolsOf(state) });
  const tokens = () => state.example?.json.tokens ?? [];
  const rove = roving(chips, () => [...chips.children]);
  const refill = () => {
    const typing = chips.querySelector("input")?.closest("li"); // kept while the user types
    const made = tokens().map((token, place) =>
      typing?.dataset.place === String(place) ? typing : chip(state, token, place),
    );
    fill(chips, made);
    rove.come();
  };
  // Rows of one length, and their height before the example arrives. Only drawing code reads
  // `pane.room`.
  const makeRoom = (room = strip.clientWidth) => {
    const { length } = state.about.task;
    const rows = Math.ceil(length / Math.max(1, Math.floor((room + GAP) / (LEAST_WIDE + GAP))));
    strip.style.minHeight = `${rows * ROW + GAP}px`;
    chips.style.setProperty("--across", Math.ceil(length / rows));
  };
  pane.fills(strip, () => {
    makeRoom(pane.room);
    draw(pane, state);
  });
  pane.draws("example", refill);
  pane.watch("about pane", () => makeRoom());
  pane.watch("about example unanswered", () => {
    const { example, unanswered } = state;
    wait.hidden = Boolean(example);
    write(wait, unanswered ? `Not computed: ${unanswered}` : waiting(state, "The example is being computed"));
  });
  pane.watch("error", () => {
    if (state.error?.kind === "example") refill(); // typed text was refused: show the last example
  });
  pane.watch("example head hover spot pair point theme off", () => draw(pane, state));
  pane.draws("about example ex head tokens order", () => tools(pane, state));
  return pane;
}

/** Go to another example, and discard typed symbols. */
export function next(state, by = 1) {
  const ex = Math.min(Math.max(0, state.ex + by), lastExample(state.about));
  state.set({ ex, tokens: null, order: null });
}

/** The buttons above the tokens. They are made once, and optional ones are at the left end, because
 *  a button that is replaced or moved while it is pressed gets no click. */
function toolsOf(state) {
  const title = "The example before";
  const before = icon("‹", title, () => next(state, -1), { title });
  const after = button("next", () => next(state), { class: "plain", title: "Another example (n)" });
  const shuffle = button("shuffle", () => state.set({ order: 1 + Math.floor(Math.random() * 9999) }), {
    class: "plain",
    title: "The same chains in another order",
  });
  const back = button("as it was", () => state.set({ tokens: null, order: null }), { class: "plain" });
  return () => {
    const { carried, given } = state.about.task; // saved pages and functions cannot shuffle facts
    able(before, state.ex);
    able(after, state.ex < lastExample(state.about));
    return [state.tokens || state.order !== null ? back : null, before, after, carried || given ? null : shuffle];
  };
}

function tools(pane, state) {
  const { carried } = state.about.task;
  const usual = state.off.length && state.example && !state.example.json.changes ? ", with nothing off" : "";
  pane.hint(
    `number ${state.ex}${carried ? ` (this page has ${carried})` : ""} · arcs: what head ${headName(chosen(state))} attends to${usual}` +
      (state.tokens ? ` · symbols of yours${carried ? ": what is true is not known here" : ""}` : "") +
      (state.order !== null ? " · shuffled" : ""),
  );
  fill(pane.tools, pane.buttons());
}

function chip(state, token, place) {
  const chain = token.chain < 0 ? "" : `, chain ${"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[token.chain % 26]}`;
  const open = () => edit(state, element, place);
  const element = h(
    "li",
    {
      class: "token",
      tabindex: "-1",
      data: { place: String(place), role: token.role, key: String(place) },
      style: { "--chain": ofToken(token) },
      "aria-label": `${token.text}, ${token.role}${chain}`,
      on: {
        ...hovered(
          () => state.set({ hover: place }, "none"),
          () => state.set({ hover: null }, "none"),
        ),
        dblclick: open,
        keydown: (event) => event.key === "Enter" && open(),
      },
    },
    textOf(token),
  );
  return element;
}

function textOf({ text, role }) {
  return [h("b", {}, text), h("small", {}, shortRole(role))];
}

/** Let the user type another symbol for a position. */
function edit(state, element, place) {
  if (state.about.task.given || element.querySelector("input")) return;
  const shown = () => state.example.json.tokens;
  const typed = h("input", {
    type: "text",
    value: shown()[place].text,
    size: 3,
    maxlength: "12",
    "aria-label": `Symbol at position ${place}`,
  });
  let done = false;
  const end = (keep) => {
    if (done || !state.example) return; // the example was taken away
    done = true;
    const text = typed.value.trim();
    const token = shown()[place];
    const other = keep && text && text !== token.text && !/\s/.test(text);
    if (document.activeElement === typed) element.focus();
    fill(element, textOf(other ? { ...token, text } : token));
    if (other) state.set({ tokens: shown().map((its, n) => (n === place ? text : its.text)) });
  };
  typed.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
    const to = event.shiftKey ? element.previousElementSibling : element.nextElementSibling;
    if (event.key !== "Tab" || !to) return;
    event.preventDefault();
    end(true);
    to.focus();
  });
  typed.addEventListener("blur", () => end(true));
  fill(element, typed);
  typed.select();
}

/** Draw the attention of the chosen head as arcs from source to destination. */
function draw(pane, state) {
  const { arcs, chips, strip } = pane;
  const found = state.example?.attention;
  const items = [...chips.children];
  if (!found || !items.length) return fill(arcs);
  const { point } = state;
  const which = point?.head === undefined ? chosen(state) : point;
  const { size, shares } = headOf(found, which);
  const { tokens } = state.example.json;
  const box = strip.getBoundingClientRect();
  const larger = zoom();
  const places = items.map((its) => {
    const at = its.getBoundingClientRect();
    return [(at.left - box.left + at.width / 2) / larger, (at.top - box.top) / larger];
  });
  const shown = [];
  const lit = new Set(tokens.flatMap((its, n) => (tokenLit(point, its) ? [n] : [])));
  const { hover: focus, pair } = state;
  const spot = state.spot ?? (point?.source ? point : null);
  const some = focus !== null || spot || pair; // is anything pointed at?
  for (let destination = 0; destination < size; destination++)
    for (let source = 0; source < size; source++) {
      const share = shares[destination * size + source];
      const [r, c] = [tokens[destination], tokens[source]];
      const own = r.chain === c.chain;
      const paired = pair?.[0] === destination && pair[1] === source;
      const spotted = r.role === spot?.destination && c.role === spot.source && own === (state.kind !== "others");
      const drawn = destination !== source && (share >= LEAST || paired);
      const hot = paired || spotted || (drawn && [destination, source].includes(focus));
      if (hot) lit.add(destination).add(source);
      const look = { hot, quiet: some && !hot, colour: own ? ofToken(r) : "var(--known)" };
      if (drawn) shown.push(arc(places[source], places[destination], share, look));
    }
  arcs.setAttribute("viewBox", `0 0 ${strip.clientWidth} ${strip.clientHeight}`);
  fill(arcs, shown);
  items.forEach((its, n) => {
    its.classList.toggle("lit", lit.has(n));
  });
  if (focus !== null) {
    const row = shares.subarray(focus * size, (focus + 1) * size);
    const most = Math.max(...row);
    const read = tokens[row.indexOf(most)].text;
    announce(`In head ${headName(which)}, ${tokens[focus].text} attends to ${read} with ${number(most)}`);
  }
}

function arc([x1, y1], [x2, y2], share, { hot, quiet, colour }) {
  const far = Math.abs(x2 - x1);
  const top = (Math.min(y1, y2) - Math.min(62, 10 + far * 0.16)).toFixed(1);
  const from = `${x1.toFixed(1)} ${(y1 - 2).toFixed(1)}`;
  const to = `${x2.toFixed(1)} ${(y2 - 3).toFixed(1)}`;
  return s("path", {
    class: `arc${hot ? " hot" : ""}${quiet ? " quiet" : ""}`,
    d: `M${from}C${x1.toFixed(1)} ${top} ${x2.toFixed(1)} ${top} ${to}`,
    style: { stroke: colour, "stroke-width": (0.6 + 2.6 * share).toFixed(2), "--share": share.toFixed(3) },
  });
}

/** The example as SVG: the tokens below the current arcs. */
function drawing(state, pane) {
  const origin = pane.strip.getBoundingClientRect();
  const made = s("svg", {
    class: "arcs",
    viewBox: `0 0 ${pane.strip.clientWidth} ${pane.strip.clientHeight}`,
  });
  made.append(...[...pane.arcs.children].map((its) => its.cloneNode(true)));
  [...pane.chips.children].forEach((item, n) => {
    const at = item.getBoundingClientRect();
    const token = state.example.json.tokens[n];
    const [x, y, wide, high] = [at.left - origin.left, at.top - origin.top, at.width, at.height].map((its) => its / zoom());
    const style = { fill: ofToken(token), stroke: ofToken(token) };
    made.append(
      box(x, y, wide, high, { rx: 6, "fill-opacity": 0.2, style }),
      label(x + wide / 2, y + 16, token.text, { class: "token-text", "text-anchor": "middle" }),
      label(x + wide / 2, y + 30, shortRole(token.role), { class: "token-role", "text-anchor": "middle" }),
    );
  });
  return made;
}

function numbers(state) {
  const found = state.example?.attention;
  const head = chosen(state);
  const { size, shares } = found ? headOf(found, head) : {};
  const { tokens } = state.example?.json ?? { tokens: [] };
  const attended = (n) =>
    tokens.map(({ text }, c) => [`${headName(head)} attends to ${c} ${text}`, digits(shares[n * size + c])]);
  return tokens.map(({ text, role, chain }, n) => ({
    position: n,
    symbol: text,
    role,
    chain,
    ...(found && Object.fromEntries(attended(n))),
  }));
}
