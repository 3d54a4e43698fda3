// Answers questions about one model by computing, where there is no server: the same questions, and
// the same numbers as those of hopscope/web/measuring.py and examples.py.

import { Bench, drive, finished } from "./bench.js";
import { changesOf, headKey } from "./changes.js";
import { drawing } from "./draw.js";
import { logSum, summary } from "./marks.js";
import { checkPaths, tableName, tablesOf } from "./paint.js";
import { spelled } from "./spelled.js";
import { Transformer } from "./transformer.js";

const OPEN = 3;
const OTHERS = 64; // examples over which changes are averaged that need others

export class Engine {
  /** `tables` are of hopscope/web/tables.py, `attended` those of the circuit's JSON, which its rows
   *  follow; `weights` gives the tensors after a step. */
  constructor({ tables, hops, circuit, attended = [], weights }) {
    Object.assign(this, { tables, hops, weights });
    this.attended = new Map(attended.map(({ by, head, rows }) => [tableName(by, head), rows]));
    this.circuit = circuit && new Map(circuit.map((its) => [headKey(its.layer, its.head), its.change]));
    this.models = new Map();
    this.benches = new Map();
    this.means = new Map();
  }

  /** Losses as the model is (or its circuit), and with the changes. */
  async ablate(asked, { signal } = {}) {
    const { examples = 256, sample = 0, step } = asked;
    const bench = await this.bench(step, sample, examples);
    const [base, changes] = this.changes(asked, bench);
    checkPaths(changes, bench.exam, bench.model.causal);
    const followed = await this.followed(asked, bench, [base, changes], signal);
    const losses = (which) => this.losses(bench, which, followed, signal);
    const count = this.tables.task.asked;
    return {
      names: this.hops,
      examples,
      guess: new Array(count).fill(this.tables.task.guess),
      clean: await losses(base),
      changed: await losses(changes),
    };
  }

  /** Every head in turn, then every row that makes a path (without paths, of every role). */
  async *costs(asked, paths, { signal } = {}) {
    const { examples = 256, sample = 0, step, instead = "uniform" } = asked;
    const bench = await this.bench(step, sample, examples);
    const [, before] = this.changes(asked, bench);
    checkPaths(before, bench.exam, bench.model.causal);
    const texts = [...this.inTurn(instead, paths, before)];
    const tried = texts.map((text) => changesOf([text], before, bench.model, bench.exam.table));
    const followed = await this.followed(asked, bench, [before, ...tried], signal);
    const clean = await this.losses(bench, before, followed, signal);
    for (const [n, change] of texts.entries())
      yield { change, clean, changed: await this.losses(bench, tried[n], followed, signal) };
  }

  *inTurn(instead, paths, before) {
    const { layers, heads } = this.tables.model;
    const every = Array.from({ length: layers * heads }, (_, n) => headKey(Math.floor(n / heads), n % heads));
    for (const head of every) yield `${head}=${instead}`;
    const row = ["mean", "resample"].includes(instead) ? "uniform" : instead;
    const readers =
      paths?.map((path) => `${headKey(path.layer, path.head)}:${path.reader}`) ??
      every.flatMap((head) => this.tables.task.roles.map((role) => `${head}:${role}`));
    for (const reader of new Set(readers)) {
      if (!before.get(reader.split(":")[0])?.carried) yield `${reader}=${row}`;
    }
  }

  async losses(bench, changes, { circuit, tables }, signal) {
    const key = JSON.stringify([circuit, ...changes]);
    if (!bench.known.has(key)) bench.known.set(key, await drive(bench.losses(changes, tables), signal));
    return summary(bench.known.get(key), bench.exam.count, this.tables.task.asked);
  }

  /** What heads do before the changes, and with them. */
  changes({ changes = [], circuit = false }, { model, exam }) {
    if (circuit && !this.circuit) throw new Error("this page carries no circuit of this model");
    const base = circuit ? this.circuit : new Map();
    return [base, changesOf(changes, base, model, exam.table)];
  }

  /** The tables that rows of these changes follow: the circuit's, if it is what is changed, and of
   *  other heads the mean attention on as many examples of the next sample. */
  async followed({ step, sample = 0, circuit = false }, { exam: { count } }, all, signal) {
    const tables = new Map(circuit ? this.attended : []);
    const names = all.flatMap((changes) => [...tablesOf(changes)]);
    if (names.some((name) => !tables.has(name)))
      for (const [name, rows] of await this.mean(step, sample + 1, count, signal))
        if (!tables.has(name)) tables.set(name, rows);
    return { circuit, tables };
  }

  /** The mean attention of every head on the first examples of a sample. */
  async mean(step, sample, examples, signal) {
    const key = `${step} ${sample} ${examples}`;
    if (!this.means.has(key)) {
      const bench = new Bench(
        await this.model(step),
        await drive(drawing(this.tables.task, sample, examples), signal),
      );
      if (this.means.size >= OPEN) this.means.clear();
      this.means.set(key, await drive(bench.tables(), signal));
    }
    return this.means.get(key);
  }

  async model(step) {
    if (!this.models.has(step)) {
      this.models.set(step, new Transformer(this.tables.model, await this.weights(step)));
    }
    return this.models.get(step);
  }

  /** The model on the first examples of a sample; the last few are kept. */
  async bench(step, sample, examples) {
    const key = `${step} ${sample} ${examples}`;
    const found = this.benches.get(key) ?? this.opened(step, sample, examples);
    this.benches.delete(key);
    this.benches.set(key, found);
    if (this.benches.size > OPEN) this.benches.delete(this.benches.keys().next().value);
    try {
      return await found;
    } catch (error) {
      this.benches.delete(key);
      throw error;
    }
  }

  /** Who gives a question up does not stop this: another may wait for the same bench. */
  async opened(step, sample, examples) {
    const model = await this.model(step);
    return new Bench(model, await drive(drawing(this.tables.task, sample, examples)));
  }

  /** One example: words in `about`, and arrays, as a server sends them. */
  async example(asked, { signal } = {}) {
    const { sample = 0, index = 0, step, tokens = null, order = null } = asked;
    const one = spelled(this.tables.task, { sample, index, order, words: tokens });
    const model = await this.model(step);
    const [base, changes] = this.changes(asked, { model, exam: one });
    const others = base.size || changes.size ? OTHERS : 1;
    const draw = () => drive(drawing(this.tables.task, sample, others), signal);
    const exam = others === 1 ? one : joined(one, await draw());
    checkPaths(changes, exam, model.causal);
    const { tables } = await this.followed(asked, { exam }, [base, changes], signal);
    const clean = attended(model, exam, base, tables);
    const about = {
      tokens: this.tokens(exam),
      answers: this.answers(one, clean.outputs),
      candidates: this.tables.task.names,
    };
    const tensors = new Map([["attention", clean.attention]]);
    if (asked.changes?.length) {
      const changed = attended(model, exam, changes, tables);
      tensors.set("changes.attention", changed.attention);
      about.changes = { answers: this.answers(one, changed.outputs) };
    }
    return { about, tensors };
  }

  tokens(exam) {
    const { facts, roles, names } = this.tables.task;
    return Array.from({ length: exam.length }, (_, p) => ({
      text: names[exam.symbol[p]] ?? "·",
      role: roles[exam.role[p]],
      chain: exam.chain[p],
      fact: facts[exam.role[p]],
    }));
  }

  /** Every question: where it is asked, and hop by hop what is true and what the model says. */
  answers({ questions, vectors, length, read }, outputs) {
    const { asked, tokens, classes, dim } = this.tables.task;
    const size = tokens ? classes : dim;
    return questions.map(({ position, chain, truth }) => {
      const from = (position - length + read) * asked * size;
      const given = (n) => outputs.subarray(from + n * size, from + (n + 1) * size);
      const hops = this.hops.map((hop, n) => ({ hop, ...this.said(given(n), truth[n], vectors) }));
      return { position, chain, hops };
    });
  }

  /** What the model says to one hop, and how far that is from the truth, if there is one. */
  said(given, truth, vectors) {
    const { tokens, names } = this.tables.task;
    const far = tokens ? null : names.map((_, symbol) => distance(vectors, symbol, given));
    const best = tokens ? given.indexOf(Math.max(...given)) : far.indexOf(Math.min(...far));
    const known = truth !== null;
    const loss = () => (tokens ? logSum(given) - given[truth] : far[truth]);
    return {
      truth: known ? names[truth] : null,
      answer: names[best],
      right: known ? best === truth : null,
      loss: known ? loss() : null,
      probability: tokens ? Math.exp(given[best] - logSum(given)) : null,
      distance: tokens ? null : far[best],
    };
  }
}

function distance(vectors, symbol, given) {
  let square = 0;
  for (let k = 0; k < given.length; k++) square += (vectors[symbol * given.length + k] - given[k]) ** 2;
  return square / given.length;
}

/** The first example of one exam, and behind it those of another from its second on. */
function joined(one, others) {
  const exam = { ...others, symbol: one.symbol, vectors: one.vectors };
  for (const name of ["inputs", "targets", "role", "chain", "askers"]) {
    exam[name] = others[name].slice();
    exam[name].set(one[name]);
  }
  return exam;
}

/** All attention of the first example, and its outputs, with heads changed. */
function attended(model, exam, changes, tables) {
  const { length } = exam;
  const shape = [model.layers, model.heads, length, length];
  const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
  const bench = new Bench(model, { ...exam, read: length });
  const seen = (layer) => (example, head, pattern) => {
    if (example === 0) data.set(pattern, (layer * model.heads + head) * length * length);
  };
  const x = finished(bench.walked(changes, tables, seen));
  const last = x.subarray((length - exam.read) * model.d_model, length * model.d_model);
  return { attention: { shape, data }, outputs: model.leave(last, exam.read) };
}
