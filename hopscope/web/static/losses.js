// What the model answers, and how well: a bar for each hop; what is switched off, and what instead.

import { announce, button, fill, h, s, select } from "./dom.js";
import { ofChain, ofHop } from "./colours.js";
import { nearest } from "./lines.js";
import { Pane } from "./pane.js";
import { arrows, headsOf } from "./paths.js";
import { asFlag, named } from "./url.js";
import { WAYS, changeWords, number, symbolName } from "./words.js";

const WIDE = 300, ROW = 46;

export function lossesPane(state, live) {
  const pane = new Pane(state, "losses", "Losses", { drawing: () => pane.bars, rows: () => numbers(state) });
  const bars = h("div", { class: "bars" }), answers = h("div", { class: "answers" }), tray = h("div", { class: "tray" }), costs = h("div", { class: "costs" });
  pane.body.append(bars, answers, tray, costs);
  state.watch("about losses step off answer theme seed asking", () => { if (state.about?.task) showBars(pane, state, bars); });
  state.watch("about example", () => { if (state.about?.task) showAnswers(state, answers); });
  state.watch("about off as overTime costs working", () => { if (state.about?.task) showTray(state, tray, live); });
  state.watch("about costs off", () => { if (state.about?.task) showCosts(state, costs); });
  return pane;
}

/** Losses of every hop as they are known now: with what is off, or as the training noted them. */
export function current(state) {
  const { answer, losses, about } = state, hops = about.task.hops.length;
  if (state.off.length && answer) return { clean: answer.clean, changed: answer.changed, guess: answer.guess, from: `${answer.examples} examples` };
  if (!state.off.length && answer?.at === state.at) return { clean: answer.clean, changed: answer.clean, guess: answer.guess, from: `${answer.examples} examples` };
  const step = state.steps[state.at], n = losses?.validationSteps.length ? nearest(losses.validationSteps, step) : -1;
  if (n < 0) return null;
  const member = Math.max(0, (about.seeds ?? []).indexOf(state.seed)), mean = Array.from({ length: hops }, (_, hop) => losses.validation(n, member, hop));
  return { clean: { mean }, changed: { mean }, guess: about.task.guess, from: `validation, step ${losses.validationSteps[n]}` };
}

function showBars(pane, state, place) {
  const found = current(state), hops = state.about.task.asked;
  pane.hint(found ? `${found.from}${state.asking ? " …" : ""}` : "");
  told(pane, state);
  if (!found) return fill(place, h("p", { class: "quiet" }, "Being measured …"));
  const most = Math.max(...found.guess, ...found.changed.mean) * 1.15, at = (value) => 8 + (Math.min(Math.max(value, 0), most) / most) * (WIDE - 16);
  pane.bars = s("svg", { class: "loss-bars", viewBox: `0 0 ${WIDE} ${ROW * hops.length + 14}`, role: "img", "aria-label": hops.map((hop, n) => `hop ${hop}: loss ${number(found.changed.mean[n])}, clean ${number(found.clean.mean[n])}, guessing ${number(found.guess[n])}`).join("; ") });
  hops.forEach((hop, n) => {
    const y = n * ROW + 6, value = found.changed.mean[n], half = found.changed.half?.[n], x = at(value);
    const moved = state.off.length > 0;
    pane.bars.append(
      s("text", { class: "name", x: 8, y: y + 12 }, `hop ${hop}`), s("text", { class: "value", x: WIDE - 8, y: y + 12, "text-anchor": "end", data: { hop: String(hop), value: String(value) } }, number(value) + (half ? ` ± ${number(half)}` : "")),
      s("rect", { class: "under", x: 8, y: y + 19, width: WIDE - 16, height: 12, rx: 6 }), s("rect", { class: "bar", x: 8, y: y + 19, width: Math.max(2.5, x - 8), height: 12, rx: 6, style: { fill: ofHop(n) } }));
    if (half) pane.bars.append(s("line", { class: "interval", x1: at(value - half), x2: at(value + half), y1: y + 25, y2: y + 25 }));
    if (moved) pane.bars.append(s("line", { class: "notch", x1: at(found.clean.mean[n]), x2: at(found.clean.mean[n]), y1: y + 15, y2: y + 35 }));
    pane.bars.append(s("line", { class: "guess", x1: at(found.guess[n]), x2: at(found.guess[n]), y1: y + 17, y2: y + 35 }));
  });
  const guess = at(found.guess[0]);
  pane.bars.append(s("text", { class: "guess", x: guess, y: ROW * hops.length + 8, "text-anchor": "middle" }, "guessing"));
  fill(place, pane.bars);
  pane.refreshNumbers();
  if (state.off.length && state.answer && !state.asking) announce(`Losses: ${hops.map((hop, n) => `hop ${hop} ${number(found.changed.mean[n])}`).join(", ")}`);
}

function told(pane, state) {
  const { about, answer } = state, where = `${state.step === null ? "" : ` --step ${state.step}`}${state.seed === null ? "" : ` --seed ${state.seed}`}`;
  const flags = state.off.map((its) => ` --head "${asFlag(its)}"`).join("");
  pane.told(`hopscope ablate ${about.name}${where}${flags || ' --head "0.0=uniform"'} --examples ${answer?.examples ?? 256}`, state.off.length ? answer?.python ?? about.python?.ablate ?? about.python?.losses : about.python?.losses);
}

/** What is true, and beside it what the model says. */
function showAnswers(state, place) {
  const seen = state.example?.json;
  if (!seen) return fill(place);
  const asked = seen.changes?.answers ?? seen.answers, all = asked.flatMap((its) => its.hops), good = all.filter((its) => its.right).length;
  const shown = asked.slice(0, 12).map(({ position, hops }) => {
    const token = seen.tokens[position] ?? { text: "?", chain: -1 };
    return h("li", {}, h("b", { class: "ask", style: { "--chain": ofChain(token.chain) } }, token.text), hops.map((its) =>
      h("span", { class: its.right ? "right" : "wrong", title: `true ${its.truth}; the model says ${its.answer}, ${its.probability === null ? `distance ${number(its.distance)}` : `probability ${number(its.probability)}`}; loss ${number(its.loss)}` },
        h("i", { "aria-hidden": "true" }, "→ "), its.answer, h("em", {}, its.right ? "✓" : ` ✗ ${its.truth}`))));
  });
  fill(place, h("h3", {}, "Answers ", h("small", {}, `${good} of ${all.length} right in this example`)), h("ul", {}, shown));
}

function showTray(state, place, live) {
  const { off } = state, used = headsOf(state.about), { layers, heads } = state.about.model;
  const every = Array.from({ length: layers * heads }, (_, n) => ({ layer: Math.floor(n / heads), head: n % heads }));
  const set = (list) => state.change(list.map((its) => ({ as: state.as, reader: "", ...its })));
  const row = (its, n) => h("li", {}, h("span", {}, changeWords(its)),
    select(`What ${named(its)} does instead`, WAYS.map(([way]) => [way, way]), its.as, (as) => state.change(off.map((one, m) => (m === n ? { ...one, as } : one)))),
    button("×", () => state.change(off.filter((_, m) => m !== n)), { class: "icon", "aria-label": `Switch ${changeWords(its)} on again`, title: "On again" }));
  const keep = () => {
    const whole = off.filter((its) => !its.reader), rows = off.filter((its) => its.reader);
    set(every.filter((its) => !whole.some((one) => one.layer === its.layer && one.head === its.head) && !rows.some((one) => one.layer === its.layer && one.head === its.head)));
  };
  const presets = [["", "presets …"], ["circuit", "only the circuit"], ["rest", "all but the circuit"], ["none", "every head off"]];
  const preset = (its) => set(its === "none" ? every : every.filter((one) => used.has(`${one.layer}.${one.head}`) === (its === "rest")));
  const many = off.length > 6;
  fill(place, h("h3", {}, "Switched off ", h("small", {}, off.length ? `${off.length}` : "nothing yet: click an arrow or a head")),
    off.length ? h("ul", { class: many ? "many" : "" }, off.map(row)) : null,
    h("div", { class: "row" },
      button("undo", () => state.undo(), { class: "plain", title: "Undo (u)", disabled: !state.undone.length }),
      button("only these", keep, { class: "plain", title: "Switch off every head but these", disabled: !off.length }),
      button("all on", () => state.change([]), { class: "plain", disabled: !off.length }),
      select("Presets", used.size ? presets : [presets[0], presets[3]], "", (its) => its && preset(its)),
      select("What a head does when it is switched off", WAYS.map(([way, text]) => [way, `off: ${way}`]), state.as, (as) => state.set({ as }))),
    h("div", { class: "row" },
      button(state.working === "over-time" ? "stop" : "at every step", () => live.overTime(), { class: "plain", title: "The same changes at every checkpoint, as curves in the training", disabled: !off.length && state.working !== "over-time" }),
      state.overTime?.length ? button("hide curves", () => state.set({ overTime: null }, "none"), { class: "plain" }) : null,
      button(state.working === "costs" ? "stop" : "what each costs", () => live.costs(), { class: "plain", title: "Every head and path in turn" })));
}

/** Every head and path in turn: what the loss is without it. */
function showCosts(state, place) {
  const rows = state.costs ?? [];
  if (!rows.length) return fill(place);
  const mean = (its) => its.changed.mean.reduce((a, b) => a + b, 0) / its.changed.mean.length;
  const sorted = [...rows].sort((a, b) => mean(b) - mean(a)), most = Math.max(mean(sorted[0]), state.about.task.guess[0]);
  fill(place, h("h3", {}, "Loss without … ", h("small", {}, `${rows.length} measured`)), h("ol", {}, sorted.slice(0, 40).map((its) => {
    const text = its.change, [name] = text.split("=");
    const found = /^(\d+)\.(\d+)(?::(.+))?$/.exec(name);
    return h("li", {}, button(name, () => found && state.toggle({ layer: Number(found[1]), head: Number(found[2]), reader: found[3] ?? "" }), { class: "plain" }),
      h("span", { class: "meter", style: { "--share": Math.min(1, mean(its) / most) } }), h("b", {}, number(mean(its))));
  })));
}

function numbers(state) {
  const found = current(state);
  return { columns: ["hop", "loss", "± (95 %)", "clean", "± (95 %)", "guessing"],
    rows: found ? state.about.task.asked.map((hop, n) => [hop, found.changed.mean[n], found.changed.half?.[n] ?? "", found.clean.mean[n], found.clean.half?.[n] ?? "", found.guess[n]]) : [] };
}
