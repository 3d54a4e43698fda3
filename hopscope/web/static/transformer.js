// The forward pass of hopscope/models/transformer.py: from vectors or tokens, through the residual
// stream layer by layer, to outputs at the read positions. It takes several examples at a time, in
// flat arrays [example, position, d_model].

import { add, affine, gelu, norm } from "./algebra.js";
import { REPLACED, wordOf } from "./changes.js";
import { affineIn, roomFor } from "./vectors.js";

export class Transformer {
  /** `config` is from hopscope/web/carried.py; `tensors` are those of a checkpoint, by name. */
  constructor(config, tensors) {
    Object.assign(this, config);
    this.tensors = tensors;
    this.inner = config.heads * config.d_head;
    const matrices = [...tensors.values()].filter(({ shape }) => shape.length === 2);
    this.room = roomFor(Math.max(...matrices.flatMap(({ shape }) => shape)));
    this.blocks = Array.from({ length: config.layers }, (_, n) => this.block(`blocks.${n}.`));
    this.tokens = tensors.has("input.token");
    this.last = { norm: this.normOf("norm"), head: this.map("head", config.d_model, config.outputs) };
  }

  block(name) {
    const { d_model: width, d_mlp: hidden, inner } = this;
    return {
      attentionNorm: this.normOf(`${name}attention_norm`),
      query: this.map(`${name}attention.query`, width, inner),
      key: this.map(`${name}attention.key`, width, inner, false),
      value: this.map(`${name}attention.value`, width, inner),
      out: this.map(`${name}attention.out`, inner, width),
      mlp: hidden
        ? {
            norm: this.normOf(`${name}mlp_norm`),
            up: this.map(`${name}mlp.up`, width, hidden),
            down: this.map(`${name}mlp.down`, hidden, width),
          }
        : null,
    };
  }

  /** An affine map, as a function of an array and its number of rows. */
  map(name, inputs, outputs, biased = true) {
    const weight = this.numbers(`${name}.weight`, [outputs, inputs]);
    const bias = biased ? this.numbers(`${name}.bias`, [outputs]) : null;
    const { room } = this;
    return room
      ? affineIn(room, weight, bias, inputs, outputs)
      : affine(weight, bias, inputs, outputs);
  }

  /** A norm, as a function of an array and its number of rows; without norms, the same array. */
  normOf(name) {
    if (!this.norm) return (x) => x;
    const [gain, shift] = ["weight", "bias"].map((its) => this.numbers(`${name}.${its}`, [this.d_model]));
    return (x, rows) => norm(x, rows, gain, shift, this.d_model);
  }

  numbers(name, shape) {
    const found = this.tensors.get(name);
    if (found === undefined) throw new Error(`the checkpoint has no ${name}`);
    if (found.shape.join() !== shape.join()) {
      throw new Error(`${name} has the shape [${found.shape}]; this model's is [${shape}]`);
    }
    return found.data;
  }

  /** The residual stream of examples [from, to) before the first layer. */
  enter({ inputs: all, count, length }, from, to) {
    const { d_model: width } = this;
    const rows = (to - from) * length;
    const size = all.length / count;
    const inputs = all.subarray(from * size, to * size);
    if (!this.tokens) {
      this.input ??= this.map("input", size / length, width);
      return this.input(inputs, rows);
    }
    const [token, place] = ["input.token", "input.position"].map((name) => this.tensors.get(name));
    if (length > place.shape[0]) {
      throw new Error(`a sequence of ${length} tokens; this model takes at most ${place.shape[0]}`);
    }
    const x = new Float32Array(rows * width);
    for (let row = 0; row < rows; row++) {
      const [t, p] = [inputs[row] * width, (row % length) * width];
      for (let n = 0; n < width; n++) x[row * width + n] = token.data[t + n] + place.data[p + n];
    }
    return x;
  }

  /** The outputs, from the residual stream after the last layer. */
  leave(x, rows) {
    return this.last.head(this.last.norm(x, rows), rows);
  }

  /** The residual stream of examples [from, to) after a layer, at the last `read` positions.
   *
   *  `changes` are the changes of this layer's heads, by their numbers; `means` is the mean attention
   *  of all heads; `carried(word, example)` returns outputs that replace those of rows, [read, inner];
   *  `seen(example, head, pattern)` is called with all attention, `brought(example, mixed)` with the
   *  outputs of heads.
   */
  layer(number, x, all, { from, to, read, changes, means, carried, seen, brought }) {
    const { d_model: width, inner, heads, d_head, causal } = this;
    const { length } = all;
    const block = this.blocks[number];
    const rows = (to - from) * length;
    const y = block.attentionNorm(x, rows);
    const key = block.key(y, rows);
    const value = block.value(y, rows);
    const reading = (to - from) * read;
    const query = block.query(lastRows(y, to - from, length, read, width), reading);
    const mixed = new Float32Array(reading * inner);
    const pattern = new Float32Array(read * length);
    for (let n = 0; n < to - from; n++) {
      for (let head = 0; head < heads; head++) {
        const change = changes?.get(head);
        this.attend(query, key, n, head, read, length, pattern);
        const words = change && wordsOf(change, all, from + n, read);
        if (words) {
          const mean = means.subarray((number * heads + head) * length * length);
          paint(words, pattern, { length, causal, mean });
        }
        seen?.(from + n, head, pattern);
        this.mix(pattern, value, n, head, read, length, mixed);
        words?.forEach((word, row) => {
          if (!REPLACED.includes(word)) return;
          const at = row * inner + head * d_head;
          mixed.set(carried(word, from + n).subarray(at, at + d_head), n * read * inner + at);
        });
      }
      brought?.(from + n, mixed.subarray(n * read * inner, (n + 1) * read * inner));
    }
    const after = add(block.out(mixed, reading), lastRows(x, to - from, length, read, width));
    if (block.mlp === null) return after;
    const hidden = gelu(block.mlp.up(block.mlp.norm(after, reading), reading));
    return add(block.mlp.down(hidden, reading), after);
  }

  /** One head's attention in one example, [read, length]: the softmax of scaled products. */
  attend(query, key, n, head, read, length, pattern) {
    const { inner, d_head: width, causal } = this;
    const scale = width ** -0.5;
    for (let row = 0; row < read; row++) {
      const q = (n * read + row) * inner + head * width;
      const end = causal ? length - read + row + 1 : length;
      const line = row * length;
      let most = -Infinity;
      for (let to = 0; to < end; to++) {
        const k = (n * length + to) * inner + head * width;
        let one = 0, two = 0; // two independent sums, for speed
        for (let i = 1; i < width; i += 2) {
          one += query[q + i - 1] * key[k + i - 1];
          two += query[q + i] * key[k + i];
        }
        if (width % 2) one += query[q + width - 1] * key[k + width - 1];
        const score = (pattern[line + to] = (one + two) * scale);
        if (score > most) most = score;
      }
      let total = 0;
      for (let to = 0; to < end; to++) total += pattern[line + to] = Math.exp(pattern[line + to] - most);
      for (let to = 0; to < end; to++) pattern[line + to] /= total;
      for (let to = end; to < length; to++) pattern[line + to] = 0;
    }
  }

  /** Compute one head's output at the reading positions: the mean of values by its attention. */
  mix(pattern, value, n, head, read, length, mixed) {
    const { inner, d_head: width } = this;
    for (let row = 0; row < read; row++) {
      const into = (n * read + row) * inner + head * width;
      for (let to = 0; to < length; to++) {
        const share = pattern[row * length + to];
        if (share === 0) continue;
        const from = (n * length + to) * inner + head * width;
        for (let i = 0; i < width; i++) mixed[into + i] += share * value[from + i];
      }
    }
  }
}

/** The last `read` rows of every example. */
function lastRows(x, examples, length, read, width) {
  if (read === length) return x;
  const found = new Float32Array(examples * read * width);
  for (let n = 0; n < examples; n++) {
    const from = (n * length + length - read) * width;
    found.set(x.subarray(from, from + read * width), n * read * width);
  }
  return found;
}

/** A change's word for each of the last `read` positions of an example. */
function wordsOf(change, { length, roles, role }, example, read) {
  const end = (example + 1) * length;
  return Array.from({ length: read }, (_, row) => wordOf(change, roles[role[end - read + row]]));
}

/** Overwrite `pattern`, one head's attention in one example, by a word for each of its rows, as
 *  hopscope/circuits/prescriber.py does. `mean` is the head's mean attention by position, in any
 *  unit. */
function paint(words, pattern, { length, causal, mean }) {
  for (const [row, word] of words.entries()) {
    if (word === null || REPLACED.includes(word)) continue;
    const at = length - words.length + row;
    const line = pattern.subarray(row * length, (row + 1) * length);
    const end = causal ? at + 1 : length; // visible positions
    line.fill(0);
    if (word === "uniform") line.fill(1, 0, end);
    if (word === "itself") line[at] = 1;
    if (word === "previous" && at > 0) line[at - 1] = 1;
    if (word === "position") line.set(mean.subarray(at * length, at * length + end));
    whole(line, at);
  }
}

/** Normalise a row to sum 1; an empty row attends to its own position. */
function whole(line, at) {
  const total = line.reduce((sum, share) => sum + share, 0);
  if (total > 0) for (let to = 0; to < line.length; to++) line[to] /= total;
  else line[at] = 1;
}
