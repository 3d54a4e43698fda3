// Examples of a task, the same ones that the command line draws: example i of a sample is a
// function of its key. Tables say what the task is (hopscope/web/tables.py makes them).
//
// An exam is what a model is examined with:
//   {count, length, read, width, inputs, targets, role, chain, askers, tables}, and of the last
//   example drawn {symbol, vectors}
// inputs [example, position, width], or one token a position; targets [example, answer, hop, …];
// role and chain [example, position], numbers of the table of roles, and of chains; symbol [position]
// numbers of names.

import { finished } from "./bench.js";
import { bits, compared, integers, keyOf, normals, shuffled } from "./counter.js";

const VALIDATION = 1;
const NOWHERE = -1;

/** The first examples of a sample, or those from a number on; in the order of the example with
 *  another number, if it is given. One at a time: of large alphabets each takes some milliseconds. */
export function* drawing(tables, sample, count, from = 0, order = null) {
  const exam = empty(tables, count);
  const keyAt = (number) => keyOf(sample, VALIDATION, number);
  for (let n = 0; n < count; n++) {
    WAYS[tables.way](exam, n, keyAt(from + n), order === null ? null : keyAt(order));
    yield;
  }
  if (tables.tokens) exam.symbol = exam.inputs.slice(-exam.length);
  return exam;
}

/** The same without a pause. */
export function drawn(...asked) {
  return finished(drawing(...asked));
}

/** An exam in which nothing is drawn yet. */
export function empty(tables, count) {
  const { length, read, width, answers, asked, dim } = tables;
  const numbers = tables.tokens ? Int32Array : Float32Array;
  return {
    tables,
    count,
    length,
    read,
    width,
    table: tables.roles,
    inputs: new numbers(count * length * width),
    targets: new numbers(count * answers * asked * dim),
    role: new Int16Array(count * length),
    chain: new Int16Array(count * length),
    askers: new Int16Array(count * answers),
  };
}

const WAYS = {
  /** Vectors: an order of the entries, a vector for each symbol, and codes of the positions. */
  vector(exam, n, key, order) {
    const { tables, length, width } = exam;
    const { dim, slots, code } = tables;
    const symbols = vectors(tables, keyOf(key, 1));
    const cells = ordered(tables, keyOf(order ?? key, 0));
    exam.symbol = new Int16Array(length);
    exam.vectors = symbols;
    for (let p = 0; p < length; p++) {
      const [entry, column] = cells[p];
      const cell = entry * slots + (column % slots);
      const at = n * length + p;
      const place = tables.position === "pair" ? Math.floor(column / slots) : p;
      exam.symbol[p] = tables.symbol[cell];
      const from = exam.symbol[p] * dim;
      exam.inputs.set(symbols.subarray(from, from + dim), at * width);
      for (let k = 0; k < dim; k++) exam.inputs[at * width + dim + k] = code[place][k];
      exam.role[at] = tables.role[cell];
      exam.chain[at] = tables.chain[entry];
    }
    vectorTargets(exam, n, symbols);
  },

  /** Tokens in which every position asks for k hops. */
  khop(exam, n, key, order) {
    const tokens = integers(key, exam.length, exam.tables.alphabet);
    fillHops(exam, n, order === null ? tokens : inOrder(tokens, order));
  },

  /** Pairs of a key and a value, then queries at random gaps. */
  mqar(exam, n, key, order) {
    const { tables, length } = exam;
    const { pairs, asked_pairs: asked } = tables;
    const context = 2 * pairs;
    const own = shuffled(keyOf(key, 0), tables.keys).slice(0, pairs);
    const brought = shuffled(keyOf(key, 1), tables.alphabet - tables.keys)
      .slice(0, pairs)
      .map((value) => value + tables.keys);
    const [keys, values] = [own, brought].map((its) => (order === null ? its : inOrder(its, order)));
    const pairsAsked = shuffled(keyOf(key, 3), pairs)
      .slice(0, asked)
      .map((pair) => keys.indexOf(own[pair]));
    const places = slotsOf(tables, keyOf(key, 2)).map((slot) => context + 2 * slot);
    const start = n * length;
    exam.inputs.set(fillers(tables, keyOf(key, 4), keys, length), start);
    exam.role.fill(tables.roles.indexOf("other"), start, start + length);
    exam.chain.fill(pairs, start, start + length);
    const write = (p, token, role, chain) => {
      exam.inputs[start + p] = token;
      exam.role[start + p] = tables.roles.indexOf(role);
      exam.chain[start + p] = chain;
    };
    for (let pair = 0; pair < pairs; pair++) {
      write(2 * pair, keys[pair], "key 0", pair);
      write(2 * pair + 1, values[pair], "value 0", pair);
    }
    places.forEach((p, query) => {
      write(p, keys[pairsAsked[query]], "query", pairsAsked[query]);
      exam.targets[n * asked + query] = values[pairsAsked[query]];
      exam.askers[n * asked + query] = pairsAsked[query];
    });
  },
};

/** The same things in an order that a key says. */
function inOrder(its, order) {
  return shuffled(order, its.length).map((place) => its[place]);
}

/** For every position its entry, and its column among the cells of the ordered entries. */
function ordered(tables, key) {
  const { group, slots, symbol, columns, ragged } = tables;
  const raw = bits(key, group.length).map((number) => number & 0xffffffffffn);
  const order = group
    .map((_, entry) => entry)
    .sort((a, b) => group[a] - group[b] || compared(raw[a], raw[b]) || a - b);
  if (!ragged) return columns.map((column) => [order[Math.floor(column / slots)], column]);
  const every = order.flatMap((entry, n) => Array.from({ length: slots }, (_, k) => [entry, n * slots + k]));
  return every.filter(([entry, column]) => symbol[entry * slots + (column % slots)] !== NOWHERE);
}

function vectors(tables, key) {
  const { dim, count, symbols } = tables;
  if (symbols === "one-hot") {
    const hot = new Float32Array(count * dim);
    shuffled(key, dim)
      .slice(0, count)
      .forEach((one, n) => {
        hot[n * dim + one] = 1;
      });
    return hot;
  }
  const found = normals(key, count * dim);
  if (symbols !== "sphere") return found;
  const { fround } = Math;
  for (let n = 0; n < found.length; n += dim) {
    let square = 0;
    for (let k = n; k < n + dim; k++) square = fround(square + fround(found[k] * found[k]));
    const size = fround(Math.sqrt(square));
    for (let k = n; k < n + dim; k++) found[k] /= size;
  }
  return found;
}

function vectorTargets(exam, n, symbols) {
  const { tables, length } = exam;
  const { answers, asked, dim, known, read } = tables;
  for (let answer = 0; answer < answers; answer++) {
    const asker = exam.chain[n * length + length - read + answer * known];
    exam.askers[n * answers + answer] = asker;
    tables.wanted[asker].forEach((symbol, hop) => {
      const at = ((n * answers + answer) * asked + hop) * dim;
      exam.targets.set(symbols.subarray(symbol * dim, (symbol + 1) * dim), at);
    });
  }
}

/** A sequence of letters with the answers to the last position's question, and its roles. */
export function fillHops(exam, n, tokens) {
  const { tables, length } = exam;
  const { times: hops, asked, alphabet } = tables;
  const first = tokens.map((token, p) => {
    const before = tokens.lastIndexOf(token, p - 1);
    return p === 0 || before < 0 ? NOWHERE : before + 1;
  });
  const reached = [first[length - 1]];
  while (reached.length < hops) {
    const here = reached.at(-1);
    reached.push(here === NOWHERE ? NOWHERE : first[here]);
  }
  const start = n * length;
  exam.inputs.set(tokens, start);
  exam.role.fill(2 * hops + 1, start, start + length);
  for (let hop = hops - 1; hop >= 0; hop--) {
    if (reached[hop] === NOWHERE) continue;
    exam.role[start + reached[hop]] = 2 * hop + 1;
    exam.role[start + reached[hop] - 1] = 2 * hop;
  }
  exam.role[start + length - 1] = 2 * hops;
  const answers = reached.map((p) => (p === NOWHERE ? alphabet : tokens[p]));
  exam.targets.set(answers.slice(-asked), n * asked);
}

/** Different slots, drawn by their weights in a race of exponential times; then put in order. */
function slotsOf(tables, key) {
  const { weight, asked_pairs: asked } = tables;
  const numbers = normals(key, 2 * weight.length);
  const time = weight.map((rate, s) => (numbers[2 * s] ** 2 + numbers[2 * s + 1] ** 2) / rate);
  const order = weight.map((_, s) => s).sort((a, b) => time[a] - time[b] || a - b);
  return order.slice(0, asked).sort((a, b) => a - b);
}

/** A token for every position: any but this sequence's keys, or the blank. */
function fillers(tables, key, keys, length) {
  if (tables.filler === "blank") return new Array(length).fill(tables.alphabet);
  const left = [...keys].sort((a, b) => a - b).map((token, n) => token - n);
  return integers(key, length, tables.alphabet - tables.pairs).map(
    (number) => number + left.filter((taken) => taken <= number).length,
  );
}
