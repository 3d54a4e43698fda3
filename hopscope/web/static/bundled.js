// Answers the page's questions without a server, from what the page carries (hopscope/web/carried.py
// makes it): arrays as they are, examples and losses by computing where it has the weights, and
// losses that were measured beforehand where it has not.

import { Engine } from "./engine.js";
import { readSafetensors } from "./safetensors.js";
import { answerWith, unpacked } from "./source.js";

/** What a page that was saved answers. */
export class Bundle {
  live = false;

  constructor(carried) {
    this.carried = carried;
    this.description = carried.description;
    if (!carried.engine) return;
    this.steps = Object.keys(carried.weights).map(Number);
    this.engine = new Engine({
      tables: carried.engine,
      hops: carried.description.task.hops,
      circuit: carried.circuit,
      attended: carried.description.circuit?.tables,
      weights: async (step) => readSafetensors(await bytes(carried.weights[step])).tensors,
    });
  }

  async runs() {
    return { cursor: "", rows: [this.carried.row] };
  }

  /** A new object each time, as a server gives: what is opened again is drawn again. */
  async run(id, { seed } = {}) {
    this.check(id, seed);
    return { ...this.description };
  }

  async arrays(id, name, seed) {
    this.check(id, seed);
    if (!Object.hasOwn(this.carried.arrays, name)) {
      throw new Error(
        `this page carries no arrays "${name}"; it has ${Object.keys(this.carried.arrays).join(", ")}`,
      );
    }
    return unpacked(await bytes(this.carried.arrays[name]));
  }

  async example(id, question, options = {}) {
    if (this.carried.questions) return this.question(id, question);
    const asked = this.asked(id, question);
    if (this.has(asked.step)) return this.engine.example(asked, options);
    const { index, sample, changes, circuit, tokens, order } = asked;
    const plain = !index && !sample && !changes?.length && !circuit && !tokens && order === undefined;
    const found = this.carried.examples[asked.step];
    if (!plain || found === undefined) throw this.withoutWeights(asked.step, "its first example can be seen");
    return unpacked(await bytes(found));
  }

  /** A question of a benchmark. */
  async question(id, { kind, index, seed }) {
    this.check(id, seed);
    const found = this.carried.questions[kind];
    if (found?.[index] === undefined) {
      const { kinds, carried } = this.description.llm;
      throw new Error(
        `this page has no question ${index} of kind "${kind}": it has the first ${carried} of ` +
          kinds.join(", "),
      );
    }
    return unpacked(await bytes(found[index]));
  }

  async ablate(id, question, options = {}) {
    const asked = this.asked(id, question);
    return this.has(asked.step) ? this.engine.ablate(asked, options) : this.measured(asked);
  }

  /** Every checkpoint of which the page knows the answer. */
  async *overTime(id, question, options = {}) {
    for (const step of this.description.checkpoints) {
      const asked = this.asked(id, { ...question, step });
      if (!this.has(step) && this.known(asked) === null) continue;
      yield { step, ...(this.has(step) ? await this.engine.ablate(asked, options) : this.measured(asked)) };
    }
  }

  async *costs(id, question, options = {}) {
    const asked = this.asked(id, question);
    if (this.has(asked.step)) {
      yield* this.engine.costs(asked, this.description.circuit?.paths, options);
      return;
    }
    const its = this.carried.known[asked.step];
    const same = (asked.instead ?? "uniform") === "uniform" && !asked.changes?.length;
    if (!same || asked.sample || asked.circuit || its === undefined) throw this.withoutWeights(asked.step);
    for (const [change, changed] of Object.entries(its.changes)) yield { change, clean: its.clean, changed };
  }

  async views() {
    return {};
  }

  async keep() {
    throw new Error("a saved page keeps no views: copy its address instead");
  }

  /** The question, with the step that is meant. */
  asked(id, question) {
    this.check(id, question.seed);
    const { checkpoints } = this.description;
    const step = question.step ?? checkpoints.at(-1);
    if (!checkpoints.includes(step)) {
      throw new Error(`there is no checkpoint after step ${step}; there are ${checkpoints.join(", ")}`);
    }
    return { ...question, step };
  }

  /** Is this what the page holds? Where its run names no seed, any will do, as on a server. */
  check(id, seed = null) {
    const { id: own, name, seed: held = seed } = this.description;
    if (id !== own) throw new Error(`this page holds ${name} alone`);
    if (seed !== null && seed !== held) throw new Error(`this page holds seed ${held} alone`);
  }

  has(step) {
    return Object.hasOwn(this.carried.weights, step);
  }

  /** What was measured beforehand with these changes, or null. */
  known({ step, changes = [], sample = 0, circuit = false }) {
    const its = this.carried.known[step];
    if (its === undefined || sample || circuit || changes.length > 1) return null;
    if (!changes.length) return { ...its, changed: its.clean };
    return Object.hasOwn(its.changes, changes[0]) ? { ...its, changed: its.changes[changes[0]] } : null;
  }

  measured(asked) {
    const found = this.known(asked);
    if (found === null)
      throw this.withoutWeights(asked.step, "one head or path at a time can be made uniform");
    const { examples, clean, changed } = found;
    const { hops, guess } = this.description.task;
    return { names: hops, examples, guess, clean, changed };
  }

  withoutWeights(step, still = "") {
    return new Error(
      `at step ${step} this page carries no weights${still ? `, and only ${still}` : ""}; ` +
        `it computes at step ${this.steps.join(", ")}`,
    );
  }
}

/** The file that is carried as text: gzip, in base64. */
function bytes(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** The page that holds data answers by itself. */
if (globalThis.hopscopeData !== undefined) answerWith(new Bundle(globalThis.hopscopeData));
