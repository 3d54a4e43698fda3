// Answers the page's requests without a server, from the data in the page (made by
// hopscope/web/carried.py): arrays directly, examples and losses by computing if the page has the
// weights of the step, and otherwise losses that were measured in advance.

import { named } from "./changes.js";
import { arrows, everyHead, headName } from "./paths.js";
import { unpacked, unzipped } from "./safetensors.js";
import { answerWith } from "./source.js";
import { engineOf } from "./thread.js";

const AHEAD = 64; // examples on which the model is computed in advance

/** The data source of a saved page. */
class Bundle {
  live = false;
  counts = [64, 256];

  constructor(carried) {
    this.carried = carried;
    this.description = carried.description;
    this.opens = { step: carried.description.opens_at };
    this.ahead = new AbortController();
    if (!carried.engine) return;
    this.steps = Object.keys(carried.engine.steps).map(Number);
    this.engine = engineOf({ ...carried.engine, hops: carried.description.task.hops });
  }

  async runs() {
    return { cursor: "", rows: [this.carried.row] };
  }

  /** A new object each time, as from a server, so that a run that is opened again is drawn again.
   *  Throws unless the page holds this run and seed; a run without a seed accepts any, as on a
   *  server. All else is asked only of a run that was opened. */
  async run(id, { seed = null } = {}) {
    const { id: own, name, seed: held = seed } = this.description;
    if (id !== own) throw new Error(`this page holds ${name} alone`);
    if (seed !== null && seed !== held) throw new Error(`this page holds seed ${held} alone`);
    return { ...this.description };
  }

  async arrays(_, name) {
    return unpacked(await unzipped(this.carried.arrays[name]));
  }

  async example(_, question, options = {}) {
    if (this.carried.questions) return this.question(question);
    const asked = this.asked(question);
    const { index = 0, tokens } = asked;
    if (!this.has(asked.step)) {
      // With changes, too: the page says that it shows the model with nothing off.
      if (index || tokens) throw this.withoutWeights(asked.step, "its first example can be seen");
      return unpacked(await unzipped(this.carried.first[asked.step]));
    }
    const found = await this.ask("example", asked, options);
    this.lookAhead(asked.step);
    return found;
  }

  /** Ask the engine; a computation in advance is aborted first. */
  async ask(method, asked, options) {
    this.ahead.abort();
    return (await this.engine).ask(method, asked, options);
  }

  /** Compute the unchanged model in advance, so that the first click is answered sooner. */
  async lookAhead(step) {
    const { signal } = (this.ahead = new AbortController());
    await (await this.engine).ask("ablate", { step, examples: AHEAD }, { signal }).catch(() => {});
  }

  /** A question of a benchmark. */
  async question({ kind, index }) {
    const found = this.carried.questions[kind];
    if (found?.[index] === undefined) {
      const { kinds, carried } = this.description.lm;
      throw new Error(
        `this page has no question ${index} of kind "${kind}": it has the first ${carried} of ` +
          kinds.join(", "),
      );
    }
    return unpacked(await unzipped(found[index]));
  }

  async ablate(_, question, options = {}) {
    const asked = this.asked(question);
    return this.has(asked.step) ? this.computed(asked, options) : this.measured(asked);
  }

  async computed(asked, options) {
    const { hops, chance_examined: chance } = this.description.task;
    return { names: hops, chance, ...(await this.ask("ablate", asked, options)) };
  }

  /** Answers for every checkpoint for which the page has or can compute one. */
  async *overTime(_, question, options = {}) {
    for (const step of this.description.checkpoints) {
      const asked = { ...question, step };
      if (!this.has(step) && this.known(asked) === null) continue;
      yield { step, ...(this.has(step) ? await this.computed(asked, options) : this.measured(asked)) };
    }
  }

  /** Losses with every head changed in turn, then every attention row on a path (without a circuit,
   *  every row). */
  async *costs(_, question, options = {}) {
    const asked = this.asked(question);
    const { changes: before = [], ...rest } = asked;
    if (this.has(asked.step)) {
      for (const change of this.inTurn()) {
        const found = await this.ask("ablate", { ...rest, before, changes: [change] }, options);
        yield { change, clean: found.clean, changed: found.changed };
      }
      return;
    }
    const its = this.carried.known[asked.step];
    if (before.length || its === undefined) throw this.withoutWeights(asked.step);
    for (const [change, changed] of Object.entries(its.changes)) yield { change, clean: its.clean, changed };
  }

  inTurn() {
    const { model, circuit, task } = this.description;
    const heads = everyHead(model).map(headName);
    const rows = circuit
      ? arrows(this.description).map(named)
      : heads.flatMap((head) => task.roles.map((role) => `${head}:${role}`));
    return [...new Set([...heads, ...rows])].map((name) => `${name}=uniform`);
  }

  async views() {
    return {};
  }

  /** The question with its step filled in (default: the last checkpoint). */
  asked(question) {
    return { step: this.description.checkpoints.at(-1), ...question };
  }

  has(step) {
    return Boolean(this.engine) && Object.hasOwn(this.carried.engine.steps, step);
  }

  /** Losses with these changes that were measured in advance, or null. */
  known({ step, changes = [] }) {
    const its = this.carried.known[step];
    if (its === undefined || changes.length > 1) return null;
    if (!changes.length) return { ...its, changed: its.clean };
    return Object.hasOwn(its.changes, changes[0]) ? { ...its, changed: its.changes[changes[0]] } : null;
  }

  measured(asked) {
    const found = this.known(asked);
    if (found === null)
      throw this.withoutWeights(asked.step, "one head or path at a time can be made uniform");
    const { examples, clean, changed } = found;
    const { hops, chance_examined: chance } = this.description.task;
    return { names: hops, examples, chance, clean, changed };
  }

  withoutWeights(step, still = "") {
    const where = this.engine
      ? `at step ${step} this page carries no weights`
      : "this page cannot compute this model, and carries no weights";
    const other = this.engine ? `it computes at step ${this.steps.join(", ")}` : "`hopscope view` computes";
    return new Error(`${where}${still ? `, and only ${still}` : ""}; ${other}`);
  }
}

/** A page with data uses it instead of a server. */
if (globalThis.hopscopeData !== undefined) answerWith(new Bundle(globalThis.hopscopeData));
