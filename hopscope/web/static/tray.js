// The list of what is switched off, with the replacement of each, and the loss without each head
// and path. Elements are made once and updated, because an element that is replaced between pointer
// down and up gets no click.

import { item, named } from "./changes.js";
import { able, button, fill, h, icon, select, write } from "./dom.js";
import { EXAMPLES } from "./live.js";
import { everyHead, headName, headsOf } from "./paths.js";
import { WAYS, changeWords, lastAlone, number } from "./words.js";

const MANY = 6;
const MOST = 40;

export function trayOf(state, live) {
  const count = h("small");
  const list = h("ul");
  const rows = kept((name) => row(state, name));
  const plain = (text, run, title) => button(text, run, { class: "plain", title });
  const undo = plain("undo", () => state.undo(), "Undo (u)");
  const keep = plain("only these", () => onlyThese(state), "Switch off every head but these");
  const none = plain("all on", () => state.change([]));
  const preset = select("Presets", [], "", (its) => {
    preset.value = "";
    if (its) choose(state, PRESETS[its]);
  });
  const way = select(
    "What a head does when it is switched off",
    WAYS,
    state.as,
    (as) => state.set({ as }),
  );
  const told = "The same changes at every checkpoint, as curves in the training";
  const every = plain("at every step", () => live.stream("overTime"), told);
  const hide = plain("hide curves", () => state.set({ overTime: null }, "none"));
  const costs = plain("what each costs", () => live.stream("costs"), "Every head and path in turn");
  const element = h(
    "div",
    { class: "tray" },
    h("h3", {}, "Switched off ", count),
    list,
    h("div", { class: "row" }, undo, keep, none, preset, way),
  );
  const last = h("div", { class: "row" });
  element.append(last);
  return {
    element,
    open() {
      const names = Object.keys(PRESETS).filter((its) => headsOf(state.about).size || its === NONE);
      fill(
        preset,
        ["", ...names].map((its) => h("option", { value: its }, its || "presets …")),
      );
    },
    show() {
      const { off, working, overTime } = state;
      write(count, off.length ? `${off.length}` : "nothing yet: click an arrow or a head");
      list.hidden = !off.length;
      list.classList.toggle("many", off.length > MANY);
      fill(list, rows(off.map(named)));
      off.forEach((its, n) => {
        list.children[n].querySelector("select").value = its.as;
      });
      able(undo, state.undone.length);
      for (const its of [keep, none]) able(its, off.length);
      way.value = state.as;
      const [curves, each] = ["overTime", "costs"].map((kind) => working?.split(" ").includes(kind));
      write(every, curves ? "stop" : "at every step");
      able(every, (off.length && state.steps.length > 1) || curves);
      write(costs, each ? "stop" : "what each costs");
      fill(last, every, costs, overTime?.length ? hide : null);
    },
  };
}

/** Elements by name, each cached as long as its name is in the list. */
function kept(make) {
  let made = new Map();
  return (names) => {
    made = new Map(names.map((name) => [name, made.get(name) ?? make(name)]));
    return [...made.values()];
  };
}

/** The row of one item that is off, by its name. */
function row(state, name) {
  const its = () => state.off.find((one) => named(one) === name);
  const words = changeWords(item(name));
  return h(
    "li",
    {},
    h("span", {}, words),
    select(
      `What ${name} does instead`,
      WAYS,
      its().as,
      (as) => state.change(state.off.map((one) => (one === its() ? { ...one, as } : one))),
    ),
    icon("×", `Switch ${words} on again`, () => state.change(state.off.filter((one) => one !== its())), {
      title: "On again",
    }),
  );
}

const NONE = "every head off";
const PRESETS = {
  "only the circuit": (used) => !used,
  "all but the circuit": (used) => used,
  [NONE]: () => true,
};

/** Switch off all heads of which `wanted` is true, by whether they are in the circuit. */
function choose(state, wanted) {
  const used = headsOf(state.about);
  switchOff(state, (its) => wanted(used.has(headName(its))));
}

function onlyThese(state) {
  const these = new Set(state.off.map(headName));
  switchOff(state, (its) => !these.has(headName(its)));
}

function switchOff(state, wanted) {
  const heads = everyHead(state.about.model).filter(wanted);
  state.change(heads.map((its) => ({ ...its, as: state.as })));
}

/** The list of losses without each head and path. */
export function costsOf(state) {
  const count = h("small");
  const list = h("ol");
  const rows = kept((change) => cost(state, change));
  const title = h("h3", {}, "Loss without … ", count);
  const element = h("div", { class: "costs" });
  const mean = (its) => its.changed.mean.reduce((a, b) => a + b, 0) / its.changed.mean.length;
  return {
    element,
    show() {
      const found = state.costs ?? [];
      if (!found.length) return fill(element);
      const sorted = [...found].sort((a, b) => mean(b) - mean(a)).slice(0, MOST);
      const most = Math.max(mean(sorted[0]), state.about.task.chance[0]);
      write(count, `${found.length} measured · mean of the hops, ${EXAMPLES} fresh examples${lastAlone(state.about)}`);
      fill(list, rows(sorted.map((its) => its.change)));
      sorted.forEach((its, n) => {
        const [, meter, value] = list.children[n].children;
        meter.style.setProperty("--share", Math.min(1, mean(its) / most));
        write(value, number(mean(its)));
      });
      fill(element, title, list);
    },
  };
}

/** One entry of that list, which switches its head or path. */
function cost(state, change) {
  const [name] = change.split("=");
  const { layer, head, destination } = item(name);
  return h(
    "li",
    {},
    button(name, () => state.toggle({ layer, head, destination }), { class: "plain" }),
    h("span", { class: "meter" }),
    h("b"),
  );
}
