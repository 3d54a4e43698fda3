// The page: its state, its panes, and its data source.

import { circuitPane } from "./circuit.js";
import { forgetColours } from "./colours.js";
import { button, fill, h, icon, select } from "./dom.js";
import { examplePane } from "./example.js";
import { fleetPane } from "./fleet.js";
import { headsPane } from "./heads.js";
import { keptViews } from "./kept.js";
import { helpDialog, listen, searchBox } from "./keys.js";
import { Live } from "./live.js";
import { lmPanes } from "./lm.js";
import { lossesPane } from "./losses.js";
import { ngramPanes } from "./ngram.js";
import { remembered } from "./remember.js";
import { runsPane } from "./runs.js";
import { openSource } from "./source.js";
import { State } from "./state.js";
import { timePane } from "./time.js";
import { stripOf } from "./strip.js";
import { tipOf } from "./tip.js";
import { tourButton, tourOf } from "./tour.js";
import { tracedPane } from "./traced.js";
import { counted } from "./words.js";

const FIRST = "gallery-demo";
const THEMES = ["auto", "light", "dark"];

async function begin() {
  const source = await openSource();
  const state = new State();
  const live = new Live(state, source);
  const tip = tipOf(state);
  const runs = runsPane(state, source);
  const help = helpDialog(state);
  const board = h("div", { class: "board", id: "board" });
  const panes = [];
  // Arrange panes before they are drawn, because hidden elements have no width.
  state.watch("about pane", () => arrange(state, panes, board));
  panes.push(
    examplePane(state),
    circuitPane(state, tip),
    headsPane(state),
    lossesPane(state, live),
    fleetPane(state, live),
    ...ngramPanes(state),
    ...lmPanes(state),
    tracedPane(state),
    timePane(state),
  );
  board.append(...panes.map((pane) => pane.element));
  const main = h("main", {}, tourOf(state), board, stripOf(state));
  const nothing = h("p", { class: "quiet nothing" }, "Choose a run: they are listed at the left (☰).");
  board.append(nothing);
  const error = errorLine(state);
  const find = searchBox(state);
  const showRuns = () => {
    document.body.classList.toggle("no-runs");
    document
      .querySelector(".show-runs")
      .setAttribute("aria-expanded", String(!document.body.classList.contains("no-runs")));
    runs.learn();
  };
  fill(
    document.getElementById("page"),
    button("Skip to what is drawn", skip, { class: "plain skip" }),
    header(state, source, { find, help, showRuns }),
    error,
    h("div", { class: "frame" }, runs.element, main),
    tip.element,
    help,
  );
  if (innerWidth < 1100 || !source.live) showRuns();
  listen(state, { find: find.firstChild, help, runs: showRuns });
  if (location.protocol === "about:") stayWithin(state);
  state.watch("about opening", () => {
    nothing.hidden = Boolean(state.about || state.opening);
  });
  nothing.hidden = true;
  arrange(state, panes, board);
  tip.follow();
  state.watch("stale", () => live.openRun());
  theme(state, remembered("theme") ?? "auto");
  const there = () => Boolean(state.error || (state.run && state.about?.id === state.run));
  /** What is missing until all requests are answered and drawn, and the address is up to date. */
  const missing = () =>
    Object.entries({ run: !there(), curves: runs.busy(), losses: state.asking, address: state.later > 0 })
      .flatMap(([name, misses]) => (misses ? name : []))
      .concat(live.pending);
  globalThis.hopscope = { state, source, live, missing };
  if (state.run) live.openRun();
  const openFirst = () => {
    const first = runs.rows.has(FIRST) ? FIRST : ([...runs.rows.keys()][0] ?? "");
    if (!state.run && first) state.set({ run: first, ...source.opens }, "replace");
  };
  state.watch("run listed", openFirst);
  await runs.start();
}

/** Move the focus to the circuit, or to the first button of a pane. */
function skip() {
  const first = (where) => document.querySelector(`.pane:not([hidden]) ${where}`);
  (first('.scene [tabindex="0"]') ?? first("button"))?.focus();
}

/** Handle links in the page itself: a frame in a notebook has no address, so a link would load the
 *  notebook's address into the frame. */
function stayWithin(state) {
  addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    event.preventDefault();
    state.goTo(link.getAttribute("href"));
  });
}

/** Show the panes that this kind of run has, or only the maximised one. */
function arrange(state, panes, board) {
  const { about } = state;
  const kind = !about ? "" : about.task ? "facts" : about.kind;
  const one = panes.find((pane) => pane.name === state.pane && pane.present);
  board.className = `board ${kind}${one ? " one" : ""}`;
  for (const pane of panes) {
    const full = pane === one;
    pane.element.hidden = !pane.present || Boolean(one && !full);
    pane.element.classList.toggle("full", full);
    pane.full.setAttribute("aria-pressed", String(full));
    pane.full.setAttribute("aria-label", full ? `Show all panes again` : `Maximise ${pane.title}`);
  }
  document.title = about ? `${about.name} · hopscope` : "hopscope";
}

function header(state, source, { find, help, showRuns }) {
  const title = h("h1", {});
  const told = h("p", { class: "about" });
  const seeds = h("span", {});
  const { list: kept, keep } = keptViews(state, source);
  state.watch("about opening", () => {
    const { about, opening } = state;
    const list = about?.seeds ?? [];
    title.textContent = about?.name ?? (opening ? "" : "no run");
    told.textContent = about
      ? [about.what, shapeOf(about), list.length === 1 ? `seed ${list[0]}` : null, about.state === "complete" ? null : about.state]
          .filter(Boolean)
          .join(" · ")
      : "";
    told.title = told.textContent; // where it is cut
    fill(
      seeds,
      list.length > 1
        ? select(
            "Seed",
            list.map((seed) => [seed, `seed ${seed}`]),
            state.seed ?? list[0],
            (seed) => state.set({ seed: Number(seed) }),
          )
        : null,
    );
  });
  const nextTheme = () => THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % 3];
  const themes = icon("◐", "Light or dark", () => theme(state, nextTheme(), true), {
    class: "icon theme",
    title: "Light, dark, or as the system has it",
  });
  return h(
    "header",
    { class: "bar" },
    icon("☰", "Runs", showRuns, {
      class: "icon show-runs",
      title: "Runs (r)",
      "aria-controls": "runs",
      "aria-expanded": "true",
    }),
    h(
      "a",
      { class: "mark", href: "#/", "aria-label": "hopscope" },
      h("i", { "aria-hidden": "true" }),
      "hopscope",
    ),
    h("div", { class: "title" }, title, told),
    seeds,
    kept,
    tourButton(state),
    find,
    source.live ? keep : null,
    themes,
    icon("?", "Keys", () => help.showModal(), { title: "Keys (?)" }),
  );
}

/** A short description of a run: its task and the shape of its model. */
function shapeOf({ task, model, kind }) {
  if (!task) return kind;
  const shape = `${counted(model.layers, "layer")} × ${counted(model.heads, "head")}`;
  return `${task.kind}, ${counted(task.hops.length, "hop")} · ${shape}`;
}

function theme(state, name, keep = false) {
  document.documentElement.dataset.theme = THEMES.includes(name) ? name : "auto";
  if (keep) remembered("theme", name);
  forgetColours();
  state.set({ theme: `${name}${matchMedia("(prefers-color-scheme: dark)").matches}` }, "none");
}

/** The line for errors, which does not block the page. */
function errorLine(state) {
  const text = h("span", {});
  const line = h(
    "div",
    { class: "error", role: "alert", hidden: true },
    text,
    icon("×", "Close", () => state.set({ error: null }, "none")),
  );
  state.watch("error", () => {
    line.hidden = !state.error;
    text.textContent = state.error?.text ?? "";
  });
  return line;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (globalThis.hopscope) theme(globalThis.hopscope.state, document.documentElement.dataset.theme);
});
begin();
