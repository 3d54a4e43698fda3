// Computes the answers of a page without a server, with the same numbers as
// hopscope/web/measuring.py and examples.py.

import { Bench, drive } from "./bench.js";
import { changesOf, unchanged } from "./changes.js";
import { answersOf, examplesOf, oneOf, tokensOf } from "./examples.js";
import { unpacked, unzipped } from "./safetensors.js";
import { Transformer } from "./transformer.js";

const OPEN = 3; // number of cached models
const OTHERS = 64; // examples (with the shown one) for changes that need a mean over examples
const NORMAL_95 = 1.959964;

export class Engine {
  /** Takes the page's data (hopscope/web/carried.py): the model's shape, and as text the examples
   *  and, for some steps, the weights and the mean attention of heads. */
  constructor({ model, examples, steps, hops }) {
    Object.assign(this, { shape: model, examples, steps, hops, benches: new Map() });
  }

  /** Losses of the model (with the changes in `before`), and with the changes. */
  async ablate({ step, examples = Infinity, before = [], changes = [] }, { signal } = {}) {
    const bench = await this.bench(step);
    const { count: all, hops } = bench.all;
    const count = Math.min(examples, all);
    const base = changesOf(before, unchanged(bench.model.layers));
    const found = [];
    for (const its of [base, changesOf(changes, base)])
      found.push(summary(await drive(bench.losses(its, count), signal), count, hops));
    return { examples: count, clean: found[0], changed: found[1] };
  }

  /** One example in the server's format: words in `about`, and arrays. */
  async example({ step, index = 0, tokens = null, changes = [] }, { signal } = {}) {
    const bench = await this.bench(step);
    const { model, all } = bench;
    const one = oneOf(all, index, tokens);
    const shown = new Bench(model, one, bench.means);
    const seen = (texts) => drive(attended(shown, bench, changesOf(texts, unchanged(model.layers))), signal);
    const clean = await seen([]);
    const about = {
      tokens: tokensOf(one),
      answers: answersOf(one, this.hops, clean.outputs),
    };
    const tensors = new Map([["attention", clean.attention]]);
    if (changes.length) {
      const changed = await seen(changes);
      tensors.set("changes.attention", changed.attention);
      about.changes = { answers: answersOf(one, this.hops, changed.outputs) };
    }
    return { about, tensors };
  }

  /** The bench of the model after a step (the last few are cached). */
  async bench(step) {
    const found = this.benches.get(step) ?? this.opened(step);
    this.benches.delete(step);
    this.benches.set(step, found);
    if (this.benches.size > OPEN) this.benches.delete(this.benches.keys().next().value);
    return found;
  }

  async opened(step) {
    const texts = [this.examples, this.steps[step].weights, this.steps[step].attention];
    const [examples, weights, attention] = (await Promise.all(texts.map(unzipped))).map(unpacked);
    const all = examplesOf(examples, this.shape);
    return new Bench(new Transformer(this.shape, weights.tensors), all, attention.tensors.get("mean").data);
  }
}

/** The attention of all heads in the shown example, and its outputs, with heads changed. */
function* attended(shown, bench, layers) {
  const { model, all } = shown;
  const { length } = all;
  const shape = [model.layers, model.heads, length, length];
  const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
  const seen = (layer) => (_, head, pattern) =>
    data.set(pattern, (layer * model.heads + head) * length * length);
  const carriers = yield* bench.carriers(layers, Math.min(OTHERS, bench.all.count), { shown, read: length });
  const x = yield* shown.walked(shown.parts[0], layers, { carriers, seen, read: length });
  const last = x.subarray((length - all.read) * model.d_model);
  return { attention: { shape, data }, outputs: model.leave(last, all.read) };
}

/** The 97.5 % quantile of Student's t for many examples, by the first terms of its expansion around
 * the normal distribution (Abramowitz & Stegun 26.7.5).
 */
function student(freedom) {
  const z = NORMAL_95;
  const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96;
  const third = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384;
  return z + (z ** 3 + z) / 4 / freedom + second / freedom ** 2 + third / freedom ** 3;
}

/** Mean and half width (95 %) for every hop, from losses [example, hop]. */
function summary(losses, count, hops) {
  const mean = new Array(hops).fill(0);
  const half = new Array(hops).fill(0);
  for (let n = 0; n < count * hops; n++) mean[n % hops] += losses[n] / count;
  for (let n = 0; n < count * hops; n++) half[n % hops] += (losses[n] - mean[n % hops]) ** 2;
  const width = (square) => (count > 1 ? student(count - 1) * Math.sqrt(square / (count - 1) / count) : 0);
  return { mean, half: half.map(width) };
}
