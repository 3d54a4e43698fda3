// The answer of the n-gram model to a sequence, next to the induction head's.

import { inductionHead, predict } from "./copier.js";
import { box, button, fill, h, label, labelledSvg, mark } from "./dom.js";
import { ofChain } from "./colours.js";
import { at, letters, model, parents, spaced, symbols } from "./parameters.js";
import { counted, number } from "./words.js";

const MOST = 400;

export function showSequence(pane, state, chips, place) {
  const { alphabet, seen, plain, said, head } = both(state);
  const typed = (pane.typed ??= h("input", {
    type: "text",
    class: "typed",
    spellcheck: "false",
    autocomplete: "off",
    on: {
      input: () => state.set({ tokens: words(state, typed.value) }, "replace"),
    },
  }));
  mark(typed, {
    maxlength: Math.max(MOST, model(state).window + 20) * (spaced(state) ? 3 : 1),
    "aria-label": `A sequence of ${expected(state)}`,
  });
  const own = state.tokens ?? seen.map(letters);
  if (words(state, typed.value).join(" ") !== own.join(" ")) typed.value = text(state, own);
  fill(
    pane.tools,
    typed,
    state.tokens ? button("as it was", () => state.set({ tokens: null }), { class: "plain" }) : null,
  );
  const lit = new Set(parents(state).map((lag) => seen.length - lag));
  fill(
    chips,
    seen.map((its, n) =>
      h(
        "span",
        {
          class: lit.has(n) ? "letter parent" : "letter",
          title: `position ${n}: attention ${number((said ?? head).attention[n])}`,
          style: { "--chain": ofChain(its), "--share": (said ?? head).attention[n].toFixed(3) },
        },
        h("i", {}),
        letters(its),
      ),
    ),
    h("span", { class: "letter asked" }, h("i", {}), "?"),
  );
  const told = (n) => `${said ? number(said.answer[n]) : ""} (induction head ${number(head.answer[n])})`;
  const matches = `${counted(head.matches, "earlier place")} with the same parents`;
  const all = Array.from(head.answer, (_, n) => `${letters(n)} ${told(n)}`).join(", ");
  const svg = labelledSvg("values", 420, 30 + alphabet * 30, `Next symbol: ${all}`);
  const title = plain
    ? "next symbol: the model (filled), the induction head (outline)"
    : "next symbol by the induction head";
  svg.append(label(0, 12, title, { class: "title" }));
  for (let n = 0; n < alphabet; n++) {
    const y = 24 + n * 30;
    svg.append(
      label(2, y + 15, letters(n), { class: "strong" }),
      box(24, y, 300, 20, { class: "under", rx: 5 }),
    );
    if (said)
      svg.append(
        box(24, y + 3, 300 * said.answer[n], 14, { rx: 4, style: { fill: ofChain(n) } }),
        label(334, y + 15, number(said.answer[n]), { class: "value" }),
      );
    svg.append(
      box(24, y, Math.max(1, 300 * head.answer[n]), 20, { class: "outline", rx: 5 }),
      label(420, y + 15, number(head.answer[n]), { "text-anchor": "end" }),
    );
  }
  pane.svg = svg;
  const bad = refused(state);
  typed.setAttribute("aria-invalid", String(Boolean(bad)));
  fill(
    place,
    bad ? h("p", { class: "refused", role: "status" }, bad) : null,
    h("p", { class: "quiet" }, `bars: attention of the last layer, from 0 to 1 · ${matches}`),
    svg,
  );
}

/** A text as symbols, and symbols as a text. */
const words = (state, typed) =>
  spaced(state)
    ? typed.toLowerCase().split(/\s+/).filter(Boolean)
    : [...typed.toLowerCase().replace(/\s/g, "")];
const text = (state, all) => all.join(spaced(state) ? " " : "");

/** The expected form of a sequence, in words. */
function expected(state) {
  const all = symbols(state);
  return spaced(state)
    ? `symbols with spaces between them, each one of ${all[0]} … ${all.at(-1)}`
    : `letters, each one of ${all.join("")}`;
}

/** The shown sequence as numbers: the typed one, or the beginning of a validation chain. */
function tokens(state) {
  const known = symbols(state);
  const typed = state.tokens && !refused(state);
  return typed ? state.tokens.map((its) => known.indexOf(its)) : [...state.values.sequence.data];
}

/** Why a typed sequence is refused; empty if it is valid, or nothing was typed. */
function refused(state) {
  if (!state.tokens) return "";
  const known = symbols(state);
  const { window } = model(state);
  const bad = state.tokens.find((its) => !known.includes(its));
  if (bad === undefined && state.tokens.length > window) return "";
  const what = spaced(state) ? "symbol" : "letter";
  const got = bad === undefined ? counted(state.tokens.length, what) : `“${bad}”`;
  return `Got ${got}; expected at least ${window + 1} ${expected(state)}. Shown is another sequence.`;
}

function both(state) {
  const { alphabet } = state.about.ngram;
  const seen = tokens(state);
  const plain = model(state).first === "copies";
  return {
    alphabet,
    seen,
    plain,
    said: plain ? predict(seen, alphabet, at(state, state.at), model(state)) : null,
    head: inductionHead(seen, alphabet, model(state).window, parents(state)),
  };
}

export function answers(state) {
  const { alphabet, seen, said, head } = both(state);
  const row = (symbol, model, other) => ({ symbol, model, "induction head": other });
  return [
    ...Array.from({ length: alphabet }, (_, n) => row(letters(n), said?.answer[n] ?? "", head.answer[n])),
    row("sequence", text(state, seen.map(letters)), ""),
  ];
}
