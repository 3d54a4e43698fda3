// What is switched off, what is done instead, and what each head and path costs.

import { button, fill, h, select } from "./dom.js";
import { headsOf } from "./paths.js";
import { named } from "./url.js";
import { WAYS, changeWords, number } from "./words.js";

export function showTray(state, place, live) {
  const { off } = state;
  const used = headsOf(state.about);
  const { layers, heads } = state.about.model;
  const every = Array.from({ length: layers * heads }, (_, n) => ({
    layer: Math.floor(n / heads),
    head: n % heads,
  }));
  const set = (list) => state.change(list.map((its) => ({ as: state.as, reader: "", ...its })));
  const row = (its, n) =>
    h(
      "li",
      {},
      h("span", {}, changeWords(its)),
      select(
        `What ${named(its)} does instead`,
        WAYS.map(([way]) => [way, way]),
        its.as,
        (as) => state.change(off.map((one, m) => (m === n ? { ...one, as } : one))),
      ),
      button("×", () => state.change(off.filter((_, m) => m !== n)), {
        class: "icon",
        "aria-label": `Switch ${changeWords(its)} on again`,
        title: "On again",
      }),
    );
  const keep = () => {
    const whole = off.filter((its) => !its.reader);
    const rows = off.filter((its) => its.reader);
    set(
      every.filter(
        (its) =>
          !whole.some((one) => one.layer === its.layer && one.head === its.head) &&
          !rows.some((one) => one.layer === its.layer && one.head === its.head),
      ),
    );
  };
  const presets = [
    ["", "presets …"],
    ["circuit", "only the circuit"],
    ["rest", "all but the circuit"],
    ["none", "every head off"],
  ];
  const preset = (its) =>
    set(
      its === "none"
        ? every
        : every.filter((one) => used.has(`${one.layer}.${one.head}`) === (its === "rest")),
    );
  const many = off.length > 6;
  fill(
    place,
    h(
      "h3",
      {},
      "Switched off ",
      h("small", {}, off.length ? `${off.length}` : "nothing yet: click an arrow or a head"),
    ),
    off.length ? h("ul", { class: many ? "many" : "" }, off.map(row)) : null,
    h(
      "div",
      { class: "row" },
      button("undo", () => state.undo(), {
        class: "plain",
        title: "Undo (u)",
        disabled: !state.undone.length,
      }),
      button("only these", keep, {
        class: "plain",
        title: "Switch off every head but these",
        disabled: !off.length,
      }),
      button("all on", () => state.change([]), { class: "plain", disabled: !off.length }),
      select("Presets", used.size ? presets : [presets[0], presets[3]], "", (its) => its && preset(its)),
      select(
        "What a head does when it is switched off",
        WAYS.map(([way]) => [way, `off: ${way}`]),
        state.as,
        (as) => state.set({ as }),
      ),
    ),
    h(
      "div",
      { class: "row" },
      button(state.working === "over-time" ? "stop" : "at every step", () => live.overTime(), {
        class: "plain",
        title: "The same changes at every checkpoint, as curves in the training",
        disabled: !off.length && state.working !== "over-time",
      }),
      state.overTime?.length
        ? button("hide curves", () => state.set({ overTime: null }, "none"), { class: "plain" })
        : null,
      button(state.working === "costs" ? "stop" : "what each costs", () => live.costs(), {
        class: "plain",
        title: "Every head and path in turn",
      }),
    ),
  );
}

/** Every head and path in turn: what the loss is without it. */
export function showCosts(state, place) {
  const rows = state.costs ?? [];
  if (!rows.length) return fill(place);
  const mean = (its) => its.changed.mean.reduce((a, b) => a + b, 0) / its.changed.mean.length;
  const sorted = [...rows].sort((a, b) => mean(b) - mean(a));
  const most = Math.max(mean(sorted[0]), state.about.task.guess[0]);
  fill(
    place,
    h("h3", {}, "Loss without … ", h("small", {}, `${rows.length} measured`)),
    h(
      "ol",
      {},
      sorted.slice(0, 40).map((its) => {
        const text = its.change;
        const [name] = text.split("=");
        const found = /^(\d+)\.(\d+)(?::(.+))?$/.exec(name);
        return h(
          "li",
          {},
          button(
            name,
            () =>
              found &&
              state.toggle({ layer: Number(found[1]), head: Number(found[2]), reader: found[3] ?? "" }),
            { class: "plain" },
          ),
          h("span", { class: "meter", style: { "--share": Math.min(1, mean(its) / most) } }),
          h("b", {}, number(mean(its))),
        );
      }),
    ),
  );
}
