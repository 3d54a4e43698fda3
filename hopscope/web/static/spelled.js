// One example in words, as hopscope/tasks/spelled.py tells it: as it was drawn, in the order of
// another, or with other symbols in its places. It is an exam of one, with what is asked in it:
// a list of {position, chain, truth}, where truth is, for each hop, the number of the right name,
// or null where what somebody typed does not tell.

import { drawn, empty, fillHops } from "./draw.js";

const KEY = /key \d/;
const VALUE = /value \d/;

/** The example with a number, in the order of another (by its number), or with these words. */
export function spelled(tables, { sample, index, order = null, words = null }) {
  const exam = drawn(tables, sample, 1, index, order);
  const way = WAYS[tables.way];
  const shown = { ...exam, questions: way.questions(exam) };
  if (words === null) return shown;
  return way.typed(shown, numbers(words, way.words(tables), tables.length));
}

const WAYS = {
  /** Facts about vectors: whoever types symbols writes new facts, entry by entry. */
  vector: {
    words: ({ names }) => names,
    questions({ tables, length, read, askers }) {
      const { known, wanted } = tables;
      return [...askers].map((chain, answer) => ({
        position: length - read + answer * known + known - 1,
        chain,
        truth: wanted[chain],
      }));
    },
    typed(shown, found) {
      const { tables, vectors, width, inputs } = shown;
      const { dim } = tables;
      found.forEach((symbol, p) => inputs.set(vectors.subarray(symbol * dim, (symbol + 1) * dim), p * width));
      shown.chain.fill(tables.chains);
      const entries = entriesOf(shown, found);
      const questions = shown.questions.map((its) => followed(shown, found, entries, its));
      return { ...shown, symbol: found, questions };
    },
  },

  /** Letters, of which the last one asks. */
  khop: {
    words: ({ names, alphabet }) => names.slice(0, alphabet),
    questions: ({ length, targets }) => [{ position: length - 1, chain: 0, truth: [...targets] }],
    typed(shown, found) {
      const exam = empty(shown.tables, 1);
      fillHops(exam, 0, found);
      return { ...exam, symbol: found, questions: this.questions(exam) };
    },
  },

  /** Pairs; a key that comes again asks for its value. */
  mqar: {
    words: ({ names, filler }) => (filler === "blank" ? [...names, "·"] : names),
    questions: ({ tables, role, chain, inputs }) =>
      [...role].flatMap((number, position) =>
        tables.roles[number] === "query"
          ? [{ position, chain: chain[position], truth: [inputs[2 * chain[position] + 1]] }]
          : [],
      ),
    typed(shown, found) {
      const { tables, role, chain } = shown;
      const { pairs, alphabet, roles } = tables;
      const keys = Array.from({ length: pairs }, (_, pair) => found[2 * pair]);
      const questions = [];
      for (let p = 2 * pairs; p < found.length; p++) {
        const own = keys.indexOf(found[p]);
        role[p] = roles.indexOf(own < 0 ? "other" : "query");
        chain[p] = own < 0 ? pairs : own;
        if (own < 0) continue;
        const value = found[2 * own + 1];
        const told = keys.lastIndexOf(found[p]) === own && value < alphabet;
        questions.push({ position: p, chain: own, truth: [told ? value : null] });
      }
      return { ...shown, inputs: Int32Array.from(found), symbol: found, questions };
    },
  },
};

/** The words that somebody typed, by their numbers. */
function numbers(words, names, length) {
  const unknown = words.find((word) => !names.includes(word));
  if (unknown !== undefined) {
    throw new Error(`there is no symbol "${unknown}" here; the symbols are ${names.join(", ")}`);
  }
  if (words.length !== length) {
    throw new Error(`the sequence has ${words.length} symbols; expected ${length}`);
  }
  return words.map((word) => names.indexOf(word));
}

/** For each fact, the places of its entries (keys, then the value), by what their keys say now. */
function entriesOf({ tables, role }, found) {
  const entries = tables.graph.facts.map(() => new Map());
  let keys = [];
  role.forEach((number, p) => {
    if (KEY.test(tables.roles[number])) keys.push(p);
    if (!VALUE.test(tables.roles[number])) return;
    const said = keys.map((key) => found[key]).join();
    const same = entries[tables.facts[number]];
    same.set(said, [...(same.get(said) ?? []), [...keys, p]]);
    keys = [];
  });
  return entries;
}

/** A question with the truth that follows from fact to fact; the facts on the way get its chain. */
function followed({ tables, chain }, found, entries, question) {
  const { graph, known, chains, hops } = tables;
  const first = question.position - known + 1;
  chain.fill(question.chain, first, first + known);
  const value = Object.fromEntries(graph.known.map((name, n) => [name, found[first + n]]));
  graph.facts.forEach((fact, n) => {
    const keys = fact.keys.map((name) => value[name]);
    const told = keys.includes(null) ? [] : (entries[n].get(keys.join()) ?? []);
    value[fact.value] = told.length === 1 ? found[told[0].at(-1)] : null;
    if (told.length && chain[told[0][0]] === chains) for (const p of told[0]) chain[p] = question.chain;
  });
  return { ...question, truth: hops.map((hop) => value[graph.facts[hop - 1].value]) };
}
