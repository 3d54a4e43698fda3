// The examples in a saved page (first_examples of hopscope/web/examples.py), as inputs of a model,
// and the answers in its outputs. The arrays are over all examples:
//   symbol, role, chain [example, position]; question [example, question, 2]: position and chain;
//   truth [example, question, hop], the number of a candidate, -1: none; inputs [example, position, …]
//   vectors [example, symbol, dim] and code [example, position, …] if symbols are vectors

const ARRAYS = ["symbol", "role", "chain", "question", "truth", "vectors", "code"];

/** The examples in a file; `read` and `outputs` are numbers of the model. */
export function examplesOf({ about, tensors }, { read, outputs }) {
  const all = { ...about, read };
  for (const name of ARRAYS) all[name] = tensors.get(name)?.data;
  [all.count, all.length] = tensors.get("symbol").shape;
  [, all.questions, all.hops] = tensors.get("truth").shape;
  all.size = outputs / all.hops;
  all.inputs = inputsOf(all);
  return all;
}

/** A single example; with `words` it has these symbols, and its truth is unknown. */
export function oneOf(all, index, words = null) {
  const one = { ...all, count: 1 };
  for (const name of ARRAYS) {
    const size = (all[name]?.length ?? 0) / all.count;
    one[name] = all[name]?.subarray(index * size, (index + 1) * size);
  }
  if (words !== null) {
    one.symbol = numbers(words, all);
    one.truth = one.truth.map(() => -1);
  }
  one.inputs = inputsOf(one);
  return one;
}

/** Typed words as numbers of symbols; throws for unknown words or another length. */
function numbers(words, { symbols, length }) {
  const unknown = words.find((word) => !symbols.includes(word));
  if (unknown !== undefined)
    throw new Error(`there is no symbol "${unknown}" here; the symbols are ${symbols.join(", ")}`);
  if (words.length !== length)
    throw new Error(`the sequence has ${words.length} symbols; expected ${length}`);
  return words.map((word) => symbols.indexOf(word));
}

/** The input of each position: a token, or the symbol's vector followed by the position's code. */
function inputsOf({ symbol, symbols, length, vectors, code, size }) {
  if (!vectors) return Int32Array.from(symbol);
  const behind = code.length / symbol.length;
  const inputs = new Float32Array(symbol.length * (size + behind));
  symbol.forEach((number, p) => {
    const from = (Math.floor(p / length) * symbols.length + number) * size;
    inputs.set(vectors.subarray(from, from + size), p * (size + behind));
    inputs.set(code.subarray(p * behind, (p + 1) * behind), p * (size + behind) + size);
  });
  return inputs;
}

/** The loss of each hop in one example, the mean over its questions; `outputs` [read, width]. */
export function hopLosses(all, example, outputs) {
  const { questions, hops, truth } = all;
  const losses = new Float64Array(hops);
  for (let question = 0; question < questions; question++)
    for (let hop = 0; hop < hops; hop++) {
      const right = truth[(example * questions + question) * hops + hop];
      losses[hop] += lossOf(all, example, outputOf(all, example, question, hop, outputs), right) / questions;
    }
  return losses;
}

/** The output for one hop of a question: a vector, or the logits of all candidates. */
function outputOf({ question, questions, length, read, hops, size }, example, number, hop, outputs) {
  const position = question[2 * (example * questions + number)];
  const from = ((position - length + read) * hops + hop) * size;
  return outputs.subarray(from, from + size);
}

/** The loss of an output for a candidate: the mean squared error, or the cross-entropy. */
function lossOf({ vectors, symbols, size }, example, output, candidate) {
  if (!vectors) return logSum(output) - output[candidate];
  const from = (example * symbols.length + candidate) * size;
  let square = 0;
  for (let k = 0; k < size; k++) square += (vectors[from + k] - output[k]) ** 2;
  return square / size;
}

function logSum(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  return most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
}

/** The text, role and chain of every position of one example. */
export function tokensOf({ symbol, symbols, role, roles, chain }) {
  return Array.from(symbol, (number, p) => ({
    text: symbols[number],
    role: roles[role[p]],
    chain: chain[p],
  }));
}

/** Every question of one example: its position, and for each hop the truth and the answer. */
export function answersOf(one, names, outputs) {
  const { question, questions, hops, truth, candidates, vectors } = one;
  const answered = (number, hop) => {
    const output = outputOf(one, 0, number, hop, outputs);
    const losses = candidates.map((_, candidate) => lossOf(one, 0, output, candidate));
    const best = losses.indexOf(Math.min(...losses));
    const right = truth[number * hops + hop];
    const known = right >= 0;
    return {
      hop: names[hop],
      truth: known ? candidates[right] : null,
      answer: candidates[best],
      right: known ? best === right : null,
      loss: known ? losses[right] : null,
      probability: vectors ? null : Math.exp(-losses[best]),
      distance: vectors ? losses[best] : null,
    };
  };
  return Array.from({ length: questions }, (_, number) => ({
    position: question[2 * number],
    chain: question[2 * number + 1],
    hops: names.map((_, hop) => answered(number, hop)),
  }));
}
