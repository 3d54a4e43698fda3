// Keyboard shortcuts, their list, and the search box.

import { button, h, table } from "./dom.js";
import { next } from "./example.js";
import { events } from "./events.js";
import { arrows, everyHead, hasHead, headName } from "./paths.js";
import { remembered } from "./remember.js";
import { playOrPause } from "./slider.js";

const KEYS = [
  ["← →", "one checkpoint back, on"],
  ["Home End", "first, last checkpoint"],
  ["[ ]", "the path or hop before, the next one that emerged"],
  ["space", "play, pause"],
  ["a", "switch off (or on) what the pointer or the focus is on"],
  ["u", "undo"],
  ["n", "another example"],
  ["f", "maximise the pane under the pointer"],
  ["r", "show or hide the runs"],
  ["/", "search heads and roles"],
  ["Esc", "leave the search; show all panes again; let go of the cell, then of the head, that is looked at"],
  ["?", "this list"],
];

/** Shortcuts of one character. Users of dictation may type them by mistake and can turn them off. */
const LETTERS = /^[a-z[\]/?]$/;
const SCROLLS = ["ArrowLeft", "ArrowRight", "Home", "End", " "];

export function listen(state, { find, help, runs }) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    // An input of a dialog that was just closed keeps the focus until the next frame.
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.checkVisibility()) {
      if (event.key === "Escape") leave(event.target);
      return;
    }
    const pressed = event.target.closest?.("button, a, [role=button], summary");
    if (event.key === " " && pressed) return;
    const region = event.target.closest?.("[role=region][tabindex], pre[tabindex]");
    if (SCROLLS.includes(event.key) && region && scrolls(region)) return;
    if (!state.letters && LETTERS.test(event.key)) return;
    const run = ACTIONS[event.key];
    if (!run || (!state.about && !["?", "/", "r"].includes(event.key))) return;
    event.preventDefault();
    run(state, { find, help, runs });
  });
}

/** Does the region scroll? Then the keys scroll it. */
function scrolls(region) {
  return region.scrollHeight > region.clientHeight || region.scrollWidth > region.clientWidth;
}

/** Take the focus from an input; a search box is also emptied. */
function leave(box) {
  if (box.type === "search" && box.value) {
    box.value = "";
    box.dispatchEvent(new Event("input"));
  }
  box.blur();
}

/** Go to the next (or previous) checkpoint with an event. */
function jump(state, way) {
  const { steps, at, about } = state;
  const places = events(about).map((its) => Math.max(0, steps.findIndex((step) => step >= its.step)));
  const stops = [...new Set(places)].sort((a, b) => a - b);
  const to = way > 0 ? stops.find((its) => its > at) : stops.findLast((its) => its < at);
  if (to !== undefined) state.moveTo(to);
}

/** The pane that was pointed at last, else the circuit, else the run's first pane. */
function atHand(state) {
  const seen = [...document.querySelectorAll(".pane:not([hidden])")].map((its) => its.dataset.pane);
  return [state.near, "circuit"].find((name) => seen.includes(name)) ?? seen[0] ?? "";
}

const ACTIONS = {
  ArrowLeft: (state) => state.moveTo(state.at - 1),
  ArrowRight: (state) => state.moveTo(state.at + 1),
  Home: (state) => state.moveTo(0),
  End: (state) => state.moveTo(Infinity),
  "[": (state) => jump(state, -1),
  "]": (state) => jump(state, 1),
  " ": playOrPause,
  a: (state) => state.point?.head !== undefined && state.toggle(state.point),
  u: (state) => state.undo(),
  n: (state) => next(state),
  f: (state) => state.set({ pane: state.pane ? "" : atHand(state) }),
  r: (_, { runs }) => runs(),
  "/": (_, { find }) => {
    find.focus();
    find.select();
  },
  "?": (_, { help }) => help.showModal(),
  Escape: (state) => {
    document.activeElement?.blur?.();
    if (state.pane) state.set({ pane: "" });
    else if (state.spot) state.set({ spot: null }, "none");
    else if (state.head) state.set({ head: "" });
  },
};

export function helpDialog(state) {
  state.letters = remembered("letters") !== "off";
  const letters = h("input", { type: "checkbox", checked: state.letters });
  letters.addEventListener("change", () => {
    state.letters = letters.checked;
    remembered("letters", letters.checked ? "on" : "off");
  });
  const dialog = h(
    "dialog",
    { "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    table(["key", "what it does"], KEYS),
    h("label", { class: "letters" }, letters, " Use the keys of a single letter or sign"),
    button("close", () => dialog.close(), { class: "plain" }),
  );
  dialog.addEventListener("click", (event) => {
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    const { clientX: x, clientY: y, target } = event;
    if (target === dialog && (x < left || x > right || y < top || y > bottom)) dialog.close();
  });
  return dialog;
}

/** The search box: finds heads by name and paths by roles, and shows the result. */
export function searchBox(state) {
  const list = h("datalist", { id: "places" });
  const box = h("input", {
    type: "search",
    list: "places",
    placeholder: "Find a head or role  /",
    "aria-label": "Find a head or role",
    class: "find",
  });
  state.watch("about", () => {
    const { about } = state;
    const heads = about?.model?.layers ? everyHead(about.model).slice(0, 400).map(headName) : [];
    list.replaceChildren(
      ...[...(about?.task ? arrows(about).map((its) => its.key) : []), ...heads].map((value) =>
        h("option", { value }),
      ),
    );
  });
  const go = () => {
    const text = box.value.trim();
    if (!text) return;
    const path = arrows(state.about ?? {}).find((its) => its.key.includes(text));
    const found = [text, path?.key].map((its) => /^\d+\.\d+/.exec(its ?? "")?.[0]).find(Boolean);
    const known = found && exists(state.about, found);
    box.setCustomValidity(!known ? `This run has no head and no path called ${text}.` : "");
    box.reportValidity();
    if (!known) return;
    state.set({ head: found });
    const name = CSS.escape(found);
    document.querySelector(`.map[data-head="${name}"]`)?.scrollIntoView({ block: "nearest" });
    const tag = document.querySelector(`.tag[data-path="${CSS.escape(text)}"]`);
    (tag ?? document.querySelector(`.chip[data-item="${name}"]`))?.focus();
  };
  // Search on Enter, not on blur: leaving the box is no search.
  box.addEventListener("keydown", (event) => event.key === "Enter" && go());
  box.addEventListener("input", (event) => {
    box.setCustomValidity("");
    const typed = event.inputType && event.inputType !== "insertReplacementText";
    if (!typed && [...list.children].some((its) => its.value === box.value)) go(); // chosen from the list
  });
  return h("div", { class: "search" }, box, list);
}

/** Does the run's model have this head? True if the model's shape is unknown. */
function exists(about, name) {
  const [layer, head] = name.split(".").map(Number);
  return !about?.model?.layers || hasHead(about.model, { layer, head });
}
