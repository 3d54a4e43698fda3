// A model on the examples, and every loss that is measured with heads changed: some examples at a
// time, each through all layers. Whatever is computed is a generator that stops now and then, so that
// a question can be given up; `drive` runs it.
//
// The residual streams of the model as it is are kept: a change in layer 2 begins there.

import { byLayer } from "./changes.js";
import { hopLosses } from "./examples.js";

const ROWS_AT_ONCE = 256;
const KEPT_BYTES = 256 * 2 ** 20;
const SLICE_MS = 24;

/** Run to the end, with pauses in which other things happen. */
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
      streams: [], // before layer 0, 1, …, as far as there is room
      known: new Map(), // losses that were asked for, by their changes
    }));
  }

  /** The loss of the first examples and every hop, [example, hop], with these changes. */
  *losses(changes, count) {
    const { all, model } = this;
    const crossing = [...changes.values()].some(({ carried }) => carried);
    const key = JSON.stringify([crossing ? count : 0, ...changes]);
    const layers = byLayer(changes, model.layers);
    const parts = this.first(count);
    const missing = parts.filter(({ known }) => !known.has(key));
    const carriers = missing.length ? yield* this.carriers(layers, count) : [];
    for (const part of missing)
      part.known.set(key, this.marked(part, yield* this.walked(part, layers, { carriers })));
    return parts.flatMap(({ known }) => known.get(key)).slice(0, count * all.hops);
  }

  /** The parts in which the first examples are. */
  first(count) {
    return this.parts.filter(({ from }) => from < count);
  }

  /** The residual stream of some examples after the last layer, at the last `read` positions. Who
   *  wants to see attention is asked for a function of each layer, and all layers are walked. */
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

  /** The positions that matter after a layer. */
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

  /** The residual stream of the model as it is, before a layer. */
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

  /** Keep a stream if it is the next one, and there is room. */
  keep(streams, layer, x) {
    if (streams.length !== layer || x.byteLength > this.room) return;
    this.room -= x.byteLength;
    streams.push(x);
  }

  /** For each layer with such changes: what a head carries instead in an example, which is the mean
   *  of what it carries in the first examples, or what it carries there in the example before. A bench
   *  of one example that is `shown` has it among them, in the place of the first. */
  *carriers(layers, count, { shown = null, read = this.all.read } = {}) {
    const found = [];
    for (const [layer, changes] of layers.entries()) {
      if (![...changes.values()].some(({ carried }) => carried)) continue;
      const usual = yield* this.carried(layer, count, read);
      if (shown) usual.set(yield* shown.carried(layer, 1, read));
      const size = this.reading(layer, read) * this.model.inner;
      const before = (example) => usual.subarray(((example - 1 + count) % count) * size).subarray(0, size);
      const mean = meanOf(usual, size, count);
      found[layer] = (head, example) => (changes.get(head).carried === "mean" ? mean : before(example));
    }
    return found;
  }

  /** What all heads of a layer carry in the first examples, [example, read, inner]. */
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
