// A model on its examples, and every loss that is measured with heads changed. Whatever is computed
// is a generator that stops now and then, so that the page stays awake; `drive` runs it.
//
// The residual streams of the model as it is are kept: a change in layer 2 begins there.

import { hopLosses } from "./marks.js";
import { tableName } from "./paint.js";

const ROWS_AT_ONCE = 256;
const KEPT_BYTES = 256 * 2 ** 20;
const SLICE_MS = 24;

/** Run to the end, with pauses for the page. */
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

/** The same without a pause. */
export function finished(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

export class Bench {
  constructor(model, exam) {
    this.model = model;
    this.exam = exam;
    this.at = Math.max(1, Math.floor(ROWS_AT_ONCE / exam.length));
    this.known = new Map(); // losses that were asked for, by their changes
    this.streams = []; // before layer 0, 1, …, as far as there is room
  }

  /** The loss of every example and hop, [example, hop], with these changes (by "layer.head") and the
   *  tables that their rows follow. */
  *losses(changes, tables) {
    return this.marked(yield* this.walked(changes, tables));
  }

  /** The mean attention of every head by position, as hopscope/circuits/tables.py estimates it. */
  *tables() {
    const { model, exam } = this;
    const { count, length } = exam;
    const found = new Map();
    const seen = (layer) => (example, head, pattern) => {
      const name = tableName("position", [layer, head]);
      if (!found.has(name)) found.set(name, Array.from({ length }, () => new Float64Array(length)));
      const rows = found.get(name);
      pattern.forEach((share, n) => (rows[Math.floor(n / length)][n % length] += share / count));
    };
    yield* new Bench(model, { ...exam, read: length }).walked(new Map(), null, seen);
    for (const rows of found.values())
      for (const row of rows) row.forEach((share, n) => (row[n] = Math.round(share * 1e4) / 1e4));
    return found;
  }

  /** The residual stream after the last layer, with these changes. Who wants to see attention is
   *  asked for a function of each layer, which makes it be walked from the first. */
  *walked(changes, tables, seen = null) {
    const { model } = this;
    const byLayer = Array.from({ length: model.layers }, () => new Map());
    for (const [key, change] of changes) {
      const [layer, head] = key.split(".").map(Number);
      byLayer[layer].set(head, change);
    }
    const first = byLayer.findIndex((each) => each.size);
    let layer = seen ? 0 : first < 0 ? model.layers - 1 : first;
    let x = yield* this.before(layer);
    for (; layer < model.layers; layer++)
      x = yield* this.through(layer, x, byLayer[layer], { tables, seen: seen?.(layer) });
    return x;
  }

  marked(x) {
    const { model, exam } = this;
    const { asked } = exam.tables;
    const losses = new Float64Array(exam.count * asked);
    const size = exam.read * model.d_model;
    for (let n = 0; n < exam.count; n++) {
      const outputs = model.leave(x.subarray(n * size, (n + 1) * size), exam.read);
      losses.set(hopLosses(exam, n, outputs), n * asked);
    }
    return losses;
  }

  /** The residual stream of the model as it is, before a layer. */
  *before(layer) {
    let from = Math.min(layer, this.streams.length - 1);
    let x = from < 0 ? yield* this.entered() : this.streams[from];
    for (from = Math.max(from, 0); from < layer; from++) {
      x = yield* this.through(from, x, new Map());
      this.keep(from + 1, x);
    }
    return x;
  }

  *entered() {
    const { model, exam } = this;
    const x = new Float32Array(exam.count * exam.length * model.d_model);
    for (const [from, to] of this.parts()) {
      x.set(model.enter(exam, from, to), from * exam.length * model.d_model);
      yield;
    }
    this.keep(0, x);
    return x;
  }

  /** Keep a stream if it is the next one. Two questions may compute the same one in turn: the first
   *  that comes keeps it. */
  keep(layer, x) {
    if (this.streams.length !== layer) return;
    if ((layer + 1) * x.byteLength <= KEPT_BYTES) this.streams.push(x);
  }

  /** All examples through a layer with changes of its heads, by their numbers. */
  *through(layer, x, changes, { tables, seen } = {}) {
    const { model, exam } = this;
    const read = layer === model.layers - 1 ? exam.read : exam.length;
    const carried = yield* this.instead(layer, read, changes);
    const after = new Float32Array(exam.count * read * model.d_model);
    for (const [from, to] of this.parts()) {
      const some = this.some(x, from, to);
      const its = model.layer(layer, some, exam, { from, to, read, changes, tables, carried, seen });
      after.set(its, from * read * model.d_model);
      yield;
    }
    return after;
  }

  /** What the changed heads carry instead: the mean of what heads carry in the model as it is, or
   *  what they carry there in the example before. */
  *instead(layer, read, changes) {
    const { model, exam } = this;
    const heads = [...changes].filter(([, change]) => change.carried);
    if (!heads.length) return null;
    const usual = yield* this.carried(layer, read);
    const size = read * model.inner;
    const mean = new Float64Array(size);
    usual.forEach((number, n) => {
      mean[n % size] += number / exam.count;
    });
    const instead = new Float32Array(usual.length);
    for (const [head, { carried }] of heads) {
      for (let n = 0; n < instead.length; n++) {
        if (Math.floor((n % model.inner) / model.d_head) !== head) continue;
        const before = (n - size + usual.length) % usual.length;
        instead[n] = carried === "mean" ? mean[n % size] : usual[before];
      }
    }
    return instead;
  }

  *carried(layer, read) {
    const { model, exam } = this;
    const x = yield* this.before(layer);
    const usual = new Float32Array(exam.count * read * model.inner);
    const brought = (example, mixed) => usual.set(mixed, example * mixed.length);
    for (const [from, to] of this.parts()) {
      model.layer(layer, this.some(x, from, to), exam, { from, to, read, brought });
      yield;
    }
    return usual;
  }

  some(x, from, to) {
    const size = this.exam.length * this.model.d_model;
    return x.subarray(from * size, to * size);
  }

  *parts() {
    for (let from = 0; from < this.exam.count; from += this.at) {
      yield [from, Math.min(from + this.at, this.exam.count)];
    }
  }
}
