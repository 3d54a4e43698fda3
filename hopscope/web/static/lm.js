// A benchmark of a language model: its accuracies, its questions, and heads that look things up.

import { ofChain } from "./colours.js";
import { ofAccuracies, ofAnswers } from "./commands.js";
import { button, cells, fill, h, icon, label, labelledSvg, region, rule, s, select, table } from "./dom.js";
import { next } from "./example.js";
import { Pane } from "./pane.js";
import { headName } from "./paths.js";
import { lastExample } from "./url.js";
import { counted, number } from "./words.js";

const LEFT = 190;
const ROW = 28;

export function lmPanes(state) {
  const fits = (about) => Boolean(about.lm);
  const pane = new Pane(state, "lm", "Accuracy", {
    drawing: () => pane.svg,
    rows: () => numbers(state),
    command: () => ofAccuracies(state.about),
    fits,
  });
  const question = new Pane(state, "question", "Questions", { command: () => ofAnswers(state.about), fits });
  const chart = h("div", { class: "drawing" });
  const heads = region("routes", "Heads that look things up");
  pane.body.append(chart, heads);
  pane.fills(chart, () => show(pane, state, chart));
  pane.draws("about theme", () => {
    show(pane, state, chart);
    fill(heads, state.about.heads.map(routes));
  });
  question.draws("question", () => state.question && showQuestion(question, state));
  return [pane, question];
}

/** Draw the accuracy of every kind of question with its 95 % interval, and a tick at chance. */
function show(pane, state, place) {
  const rows = state.about.results;
  const width = Math.min(900, Math.max(340, pane.room));
  const right = width - 70;
  const at = (share) => LEFT + share * (right - LEFT);
  const told = rows.map((its) => `${its.kind} ${number(its.accuracy)}`).join(", ");
  const style = { "max-width": `${width}px` };
  const svg = labelledSvg("values accuracies", width, rows.length * ROW + 34, `Accuracy: ${told}`, { style });
  pane.svg = svg;
  for (const share of width < 600 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1])
    svg.append(
      rule(at(share), 4, at(share), rows.length * ROW + 8, { class: "rule" }),
      label(at(share), rows.length * ROW + 24, `${share * 100} %`, { "text-anchor": "middle" }),
    );
  rows.forEach((its, n) => {
    const y = n * ROW + 20;
    const [low, high] = its.interval ?? [];
    const chance = rule(at(its.chance), y - 9, at(its.chance), y + 9, { class: "chance" });
    chance.append(s("title", {}, `chance ${number(its.chance)}`));
    svg.append(
      label(0, y + 4, its.kind, { class: "strong" }),
      label(LEFT - 12, y + 4, counted(its.hops, "hop"), { "text-anchor": "end" }),
      chance,
      label(right + 14, y + 4, number(its.accuracy), { class: "value" }),
    );
    if (its.interval)
      svg.append(
        rule(at(low), y, at(high), y, { class: "whisker" }),
        s("circle", { class: "mean", cx: at(its.accuracy), cy: y, r: 5.5 }),
      );
  });
  fill(place, rows.length ? svg : h("p", { class: "quiet" }, "No answers yet."));
  pane.hint(`${state.about.lm.model} · dot: accuracy with its 95 % interval · dotted tick: chance`);
}

/** A table of the best head of each route: its attention to the chain asked about, and to the
 *  others. */
function routes({ model, kind, routes: all }) {
  const rows = all.map((its) => ({
    route: its.route,
    "best head": headName(its),
    "own chain": number(its.own),
    "other chains": number(its.others),
    threshold: number(its.threshold),
    "heads beyond it": its.beyond,
  }));
  return h(
    "section",
    {},
    h("h3", {}, "Heads that look things up ", h("small", {}, `${model}, ${kind}`)),
    table(...cells(rows)),
  );
}

/** One question: its text with the symbols of chains marked, the model's answer, and the correct
 *  one. */
function showQuestion(pane, state) {
  const { kind, index, text, opening, spans, correct, answer, right } = state.question;
  const marked = [];
  const sorted = [...spans].sort((a, b) => a.start - b.start);
  let end = 0;
  for (const { start, end: last, role, chain } of sorted) {
    if (start < end) continue;
    marked.push(
      text.slice(end, start),
      h("mark", { title: role, style: { "--chain": ofChain(chain) } }, text.slice(start, last)),
    );
    end = last;
  }
  marked.push(text.slice(end), opening ? h("i", {}, opening) : null);
  const said =
    answer?.answer ??
    (answer?.probabilities ? Object.entries(answer.probabilities).sort((a, b) => b[1] - a[1])[0][0] : null);
  const nothing = answer ? "No answer that could be right. True: " : "Not answered yet. True: ";
  fill(
    pane.body,
    h("pre", { class: "prompt", tabindex: "0" }, marked),
    answer?.said ? h("p", { class: "quiet" }, words(answer.said)) : null,
    h(
      "p",
      { class: said === correct ? "right" : "wrong" },
      said === null ? nothing : "The model says ",
      h("b", {}, said ?? correct),
      said === null ? "" : said === correct ? " ✓" : ` ✗ true: ${correct}`,
      right === null || right === undefined ? "" : `; the chance that it is right: ${number(right)}`,
    ),
  );
  const all = state.about.lm.questions;
  const last = lastExample(state.about);
  const some = last < all - 1 ? `; this page has the first ${last + 1}` : "";
  pane.hint(`${kind}, number ${index} of ${all}${some}`);
  fill(
    pane.tools,
    select(
      "Which kind of question",
      state.about.lm.kinds,
      kind,
      (its) => state.set({ asked: its }),
    ),
    icon("‹", "The question before", () => next(state, -1), { disabled: !state.ex }),
    button("next", () => next(state), { class: "plain", disabled: state.ex >= last }),
  );
}

/** The last sample of the model's answer, and the number of samples. */
function words(said) {
  const where = said.length > 1 ? `In the last of ${said.length} samples it said` : "It said";
  return `${where}: ${said.at(-1)}`;
}

function numbers(state) {
  return state.about.results.map(({ kind, hops, count, accuracy, interval, chance }) => {
    const [low, high] = interval ?? [null, null];
    return { questions: kind, hops, count, accuracy, low, high, chance };
  });
}
