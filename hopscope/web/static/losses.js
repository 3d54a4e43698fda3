// The losses of the model, a bar for each hop, and its answers.

import { ofChanged, ofNoted } from "./commands.js";
import { announce, box, fill, h, label, labelledSvg, mark, rule, write } from "./dom.js";
import { ofHop, ofToken } from "./colours.js";
import { Pane } from "./pane.js";
import { points } from "./pointed.js";
import { nearest } from "./state.js";
import { costsOf, trayOf } from "./tray.js";
import { counted, lastAlone, number, waiting, whole } from "./words.js";

const WIDE = 300;
const ROW = 46;

export function lossesPane(state, live) {
  const pane = new Pane(state, "losses", "Losses", {
    drawing: () => (pane.bars?.isConnected ? pane.bars : null),
    rows: () => numbers(state),
    command: () => command(state),
  });
  const bars = h("div", { class: "bars" });
  const answers = h("div", { class: "answers" });
  const tray = trayOf(state, live);
  const costs = costsOf(state);
  pane.body.append(bars, answers, tray.element, costs.element);
  pane.draws("about losses step off answer refused theme seed asking", () => showBars(pane, state, bars));
  pane.watch("about example", () => showAnswers(state, answers));
  pane.watch("about", () => tray.open());
  pane.watch("about off as overTime working", () => tray.show());
  pane.watch("about costs", () => costs.show());
  return pane;
}

/** The known losses: measured ones, or those recorded in training (`noted`: their step). `fits` is
 *  true if they are of the current step and switches. Null if there are none. */
export function current(state) {
  const { answer, losses, about, off, refused, fits } = state;
  const noted = losses?.validationSteps ?? [];
  if (answer && (fits || off.length || !noted.length))
    return { ...answer, fits, from: fromOf(answer, fits, state) };
  if (refused || !noted.length) return null;
  const n = nearest(noted, state.steps[state.at]);
  const mean = about.task.asked.map((_, hop) => losses.validation(n, about.member, hop));
  return {
    clean: { mean },
    changed: { mean },
    chance: about.task.chance,
    noted: noted[n],
    from: `validation${about.task.labelled ? ", all positions" : ""}, step ${whole(noted[n])}${off.length ? ", nothing off" : ""}`,
    fits: !off.length,
  };
}

/** A text that says of what an answer is; short if it fits the current step and switches. */
function fromOf({ at, changes, examples }, fits, { steps, about }) {
  const measured = `${whole(examples)} fresh examples${lastAlone(about)}`;
  if (fits) return measured;
  const off = changes.length > 1 ? counted(changes.length, "change") : (changes[0] ?? "nothing off");
  return `step ${whole(steps[at])}, ${off}, ${measured}`;
}

function showBars(pane, state, place) {
  const found = current(state);
  const hops = state.about.task.asked;
  const { asking, off, refused } = state;
  const from = !found ? "" : found.fits ? found.from : `being measured; shown: ${found.from}`;
  pane.hint(from + (found && asking ? " …" : ""));
  if (!found) {
    const why = refused ? `Not measured: ${refused}` : waiting(state, "Being measured");
    return fill(place, h("p", { class: "quiet" }, why));
  }
  if (pane.drawn?.hops.join() !== hops.join()) pane.drawn = barsOf(hops, state);
  pane.bars = pane.drawn.svg;
  if (pane.bars.parentNode !== place) fill(place, pane.bars);
  pane.bars.classList.toggle("old", !found.fits);
  pane.drawn.show(found, off.length > 0);
  if (off.length && found.fits && !asking)
    announce(`Losses: ${hops.map((hop, n) => `hop ${hop} ${number(found.changed.mean[n])}`).join(", ")}`);
}

/** Bars for these hops; `show` sets their losses, with a notch for the unchanged model if heads are
 *  off. */
function barsOf(hops, state) {
  const foot = label(0, ROW * hops.length + 8, "chance", { class: "chance", "text-anchor": "middle" });
  const svg = labelledSvg("loss-bars", WIDE, ROW * hops.length + 14, "Losses"); // `show` says more
  const rows = hops.map((hop, n) => row(hop, n, state));
  svg.append(...rows.flatMap(Object.values), foot);
  const show = ({ clean, changed, chance, fits, from }, off) => {
    const most = Math.max(...chance, ...changed.mean) * 1.15;
    const at = (value) => 8 + (Math.min(Math.max(value, 0), most) / most) * (WIDE - 16);
    const stand = (line, x) => mark(line, { x1: x, x2: x });
    rows.forEach(({ value, bar, interval, notch, level }, n) => {
      const loss = changed.mean[n];
      const half = changed.half?.[n];
      write(value, number(loss) + (half ? ` ± ${number(half)}` : ""));
      mark(value, { "data-value": loss });
      mark(bar, { width: Math.max(2.5, at(loss) - 8) });
      mark(interval, { visibility: half ? "visible" : "hidden" });
      if (half) mark(interval, { x1: at(loss - half), x2: at(loss + half) });
      mark(notch, { visibility: off ? "visible" : "hidden" });
      if (off) stand(notch, at(clean.mean[n]));
      stand(level, at(chance[n]));
    });
    mark(foot, { x: at(chance[0]) });
    const told = hops.map((hop, n) => {
      const [loss, plain, most] = [changed.mean, clean.mean, chance].map((its) => number(its[n]));
      return `hop ${hop}: loss ${loss}, with nothing off ${plain}, at chance ${most}`;
    });
    mark(svg, { "aria-label": (fits ? "" : `Being measured; shown: ${from}: `) + told.join("; ") });
  };
  return { hops, svg, show };
}

/** The elements of one hop. */
function row(hop, n, state) {
  const y = n * ROW + 6;
  return {
    name: label(8, y + 12, `hop ${hop}`, { class: "name" }),
    value: label(WIDE - 8, y + 12, "", { class: "value", "text-anchor": "end", "data-hop": hop }),
    under: box(8, y + 19, WIDE - 16, 12, { class: "under", rx: 6 }),
    bar: box(8, y + 19, 0, 12, { class: "bar", rx: 6, style: { fill: ofHop(n) } }),
    interval: rule(0, y + 25, 0, y + 25, { class: "interval" }),
    notch: rule(0, y + 15, 0, y + 35, { class: "notch" }),
    level: rule(0, y + 17, 0, y + 35, { class: "chance" }),
    whole: points(box(0, y, WIDE, ROW - 4, { class: "grip" }), state, { hop }),
  };
}

function command(state) {
  const { about, answer, off } = state;
  const { noted } = current(state) ?? {};
  return noted === undefined || off.length
    ? ofChanged(state, answer?.examples ?? 256)
    : ofNoted(about, noted);
}

const sure = ({ probability, distance }) =>
  probability === null ? `distance ${number(distance)}` : `probability ${number(probability)}`;

/** Show the model's answers, with the truth where they are wrong. */
function showAnswers(state, place) {
  const seen = state.example?.json;
  if (!seen) return fill(place);
  const asked = seen.changes?.answers ?? seen.answers;
  if (!asked.length) return fill(place); // the answers are not classes
  const all = asked.flatMap((its) => its.hops).filter((its) => its.truth !== null);
  const good = all.filter((its) => its.right).length;
  const whose = state.off.length && !seen.changes ? ", with nothing off" : "";
  const how = all.length ? `${good} of ${all.length} right in this example${whose}` : "what is right is not known here";
  const shown = asked.slice(0, 12).map(({ position, chain, hops }) => {
    const token = seen.tokens[position] ?? { text: "?", chain: -1 };
    return h(
      "li",
      {},
      h("b", { class: "ask", style: { "--chain": ofToken(token) } }, token.text),
      hops.map((its, n) => {
        const said = h(
          "span",
          {
            class: its.right === null ? "" : its.right ? "right" : "wrong",
            title: `true ${its.truth ?? "is not known"}; the model says ${its.answer}, ${sure(its)}; loss ${number(its.loss)}`,
          },
          h("i", { "aria-hidden": "true" }, "→ "),
          its.answer,
          its.right === null ? null : h("em", {}, its.right ? "✓" : ` ✗ true: ${its.truth}`),
        );
        return points(said, state, { hop: its.hop === "answer" ? undefined : state.about.task.asked[n], chain });
      }),
    );
  });
  fill(
    place,
    h("h3", {}, "Answers ", h("small", {}, how)),
    h("ul", {}, shown),
  );
}

/** The table of losses; empty unless they are of the current step and switches. */
function numbers(state) {
  const its = current(state);
  if (!its?.fits) return [];
  const { clean, changed, chance } = its;
  return state.about.task.asked.map((hop, n) => ({
    hop,
    loss: changed.mean[n],
    "± (95 %)": changed.half?.[n] ?? "",
    "with nothing off": clean.mean[n],
    "± (95 %), nothing off": clean.half?.[n] ?? "",
    "at chance": chance[n],
  }));
}
