// Runs a model on the examples, in parts, and measures losses with heads changed. Computations are
// generators that yield now and then, so that a request can be aborted; `drive` runs them.
//
// Residual streams of the unchanged model are cached: a change in layer 2 is computed from there.

import { replaces } from "./changes.js";
import { hopLosses } from "./examples.js";

const ROWS_AT_ONCE = 256;
const KEPT_BYTES = 256 * 2 ** 20;
const SLICE_MS = 24;

/** Run a generator to the end, with pauses for the event loop. */
export async function drive(steps, signal = undefined) {
  for (;;) {
    const until = performance.now() + SLICE_MS;
    do {
      const { done, value } = steps.next();
      if (done) return value;
    } while (performance.now() < until);
    await new Promise((resume) => setTimeout(resume));
    signal?.throwIfAborted();
  }
}

export class Bench {
  /** `means` is the mean attention of every head, [layer, head, destination, source]. */
  constructor(model, all, means) {
    Object.assign(this, { model, all, means, room: KEPT_BYTES });
    const size = Math.max(1, Math.floor(ROWS_AT_ONCE / all.length));
    this.parts = Array.from({ length: Math.ceil(all.count / size) }, (_, n) => ({
      from: n * size,
      to: Math.min((n + 1) * size, all.count),
      streams: [], // before layer 0, 1, …, as many as fit
      known: new Map(), // cached losses, by their changes
    }));
  }

  /** The loss of the first examples and every hop, [example, hop], with the changes of each layer. */
  *losses(layers, count) {
    const { all } = this;
    const key = JSON.stringify([layers.some(replaces) ? count : 0, layers.map((its) => [...its])]);
    const parts = this.first(count);
    const missing = parts.filter(({ known }) => !known.has(key));
    const carriers = missing.length ? yield* this.carriers(layers, count) : [];
    for (const part of missing)
      part.known.set(key, this.marked(part, yield* this.walked(part, layers, { carriers })));
    return parts.flatMap(({ known }) => known.get(key)).slice(0, count * all.hops);
  }

  /** The parts that hold the first `count` examples. */
  first(count) {
    return this.parts.filter(({ from }) => from < count);
  }

  /** The residual stream of some examples after the last layer, at the last `read` positions. With
   *  `seen`, all layers are computed, and seen(layer) receives the attention of each. */
  *walked(part, layers, { carriers = [], seen = null, read = this.all.read } = {}) {
    const { model, all, means } = this;
    const changed = layers.findIndex((its) => its.size);
    let layer = seen ? 0 : changed < 0 ? model.layers - 1 : changed;
    let x = yield* this.before(part, layer);
    for (; layer < model.layers; layer++) {
      const [changes, carried] = [layers[layer], carriers[layer]];
      const its = { ...part, read: this.reading(layer, read), changes, means, carried };
      x = model.layer(layer, x, all, { ...its, seen: seen?.(layer) });
      yield;
    }
    return x;
  }

  /** How many last positions are needed after a layer. */
  reading(layer, read) {
    return layer === this.model.layers - 1 ? read : this.all.length;
  }

  marked({ from, to }, x) {
    const { model, all } = this;
    const size = all.read * model.d_model;
    return Array.from({ length: to - from }, (_, n) => {
      const outputs = model.leave(x.subarray(n * size, (n + 1) * size), all.read);
      return [...hopLosses(all, from + n, outputs)];
    }).flat();
  }

  /** The residual stream of the unchanged model before a layer. */
  *before(part, layer) {
    const { model, all } = this;
    const { from, to, streams } = part;
    if (!streams.length) this.keep(streams, 0, model.enter(all, from, to));
    let at = Math.min(layer, streams.length - 1);
    let x = at < 0 ? model.enter(all, from, to) : streams[at];
    for (at = Math.max(at, 0); at < layer; at++) {
      x = model.layer(at, x, all, { from, to, read: all.length });
      this.keep(streams, at + 1, x);
      yield;
    }
    return x;
  }

  /** Cache a stream if it is the next one and fits. */
  keep(streams, layer, x) {
    if (streams.length !== layer || x.byteLength > this.room) return;
    this.room -= x.byteLength;
    streams.push(x);
  }

  /** For each layer with the changes "mean" or "resample": a function (word, example) that gives
   *  the outputs of all heads instead, the mean over the first examples, or those of the example
   *  before. If the bench `shown` (of one example) is given, its example takes the place of the
   *  first. */
  *carriers(layers, count, { shown = null, read = this.all.read } = {}) {
    const found = [];
    for (const [layer, changes] of layers.entries()) {
      if (!replaces(changes)) continue;
      const usual = yield* this.carried(layer, count, read);
      if (shown) usual.set(yield* shown.carried(layer, 1, read));
      const size = this.reading(layer, read) * this.model.inner;
      const before = (example) => usual.subarray(((example - 1 + count) % count) * size).subarray(0, size);
      const mean = meanOf(usual, size, count);
      found[layer] = (word, example) => (word === "mean" ? mean : before(example));
    }
    return found;
  }

  /** The outputs of all heads of a layer in the first examples, [example, read, inner]. */
  *carried(layer, count, read) {
    const { model, all } = this;
    const rows = this.reading(layer, read);
    const parts = this.first(count);
    const usual = new Float32Array(parts.at(-1).to * rows * model.inner);
    const brought = (example, mixed) => usual.set(mixed, example * mixed.length);
    for (const part of parts) {
      const x = yield* this.before(part, layer);
      model.layer(layer, x, all, { ...part, read: rows, brought });
      yield;
    }
    return usual;
  }
}

function meanOf(usual, size, count) {
  const mean = new Float64Array(size);
  for (let n = 0; n < size * count; n++) mean[n % size] += usual[n] / count;
  return mean;
}
