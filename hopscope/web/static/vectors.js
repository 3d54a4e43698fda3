// A matrix product with SIMD instructions, several times as fast as loops in JavaScript: a small
// WebAssembly function, assembled here. If the browser or a policy refuses WebAssembly, the loops of
// algebra.js are used.
//
// The function makes a tile of 4 rows × 8 outputs: y[r] = bias + Σ_n x[r][n] · w[n], where the 8
// outputs are two vectors of 4 numbers. A panel of weights is [1 + inputs, 8], its first row the bias.

const [ROWS, OUTPUTS] = [4, 8];
const BLOCK = 64; // rows that are copied into memory together

const [X, W, Y, COUNT, X_STEP, Y_STEP] = [0, 1, 2, 3, 4, 5]; // addresses (bytes), count, strides
const [ROW, LEFT, RIGHT, ONE, SUM] = [6, 9, 10, 11, 12]; // rows 1 to 3 of x; weights; a number of x; sums

const whole = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...whole(n >> 7)]); // LEB128
const get = (n) => [0x20, n];
const set = (n) => [0x21, n];
const add = (n, amount) => [...get(n), ...amount, 0x6a, ...set(n)];
const constant = (n) => [0x41, n];
const load = (at, offset) => [...get(at), 0xfd, 0x00, 2, offset];
const splat = (at) => [...get(at), 0xfd, 0x09, 2, 0];
const times = [0xfd, 0xe6, 0x01];
const plus = [0xfd, 0xe4, 0x01];
const store = (offset) => [0xfd, 0x0b, 2, offset];

const rows = [X, ROW, ROW + 1, ROW + 2];
const sums = rows.map((_, r) => [SUM + 2 * r, SUM + 2 * r + 1]);
const body = [
  ...rows.slice(1).flatMap((row, r) => [...get(rows[r]), ...get(X_STEP), 0x6a, ...set(row)]),
  ...sums.flatMap(([left, right]) => [...load(W, 0), ...set(left), ...load(W, 16), ...set(right)]),
  ...[0x03, 0x40], // loop
  ...[...add(W, constant(32)), ...load(W, 0), ...set(LEFT), ...load(W, 16), ...set(RIGHT)],
  ...rows.flatMap((row, r) => [
    ...[...splat(row), ...set(ONE), ...add(row, constant(4))],
    ...[...get(sums[r][0]), ...get(ONE), ...get(LEFT), ...times, ...plus, ...set(sums[r][0])],
    ...[...get(sums[r][1]), ...get(ONE), ...get(RIGHT), ...times, ...plus, ...set(sums[r][1])],
  ]),
  ...[...get(COUNT), ...constant(1), 0x6b, 0x22, COUNT, 0x0d, 0x00, 0x0b], // over all inputs
  ...sums.flatMap(([left, right]) => [
    ...[...get(Y), ...get(left), ...store(0), ...get(Y), ...get(right), ...store(16)],
    ...add(Y, get(Y_STEP)),
  ]),
  0x0b,
];
const section = (id, bytes) => [id, ...whole(bytes.length), ...bytes];
const locals = [2, 3, 0x7f, 11, 0x7b]; // three addresses, eleven vectors
const MODULE = Uint8Array.from([
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...section(1, [1, 0x60, 6, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0]), // six i32, no result
  ...section(2, [1, 1, 0x6d, 1, 0x6d, 2, 0, 1]), // memory m.m
  ...section(3, [1, 0]),
  ...section(7, [1, 1, 0x74, 0, 0]), // exported as t
  ...section(10, [1, ...whole(locals.length + body.length), ...locals, ...body]),
]);

/** The memory for the products of one model: blocks of rows of x and y, followed by the weights in
 *  panels. */
class Room {
  /** `widest` is the largest length of a row. */
  constructor(widest) {
    this.memory = new WebAssembly.Memory({ initial: 1 });
    const made = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { m: { m: this.memory } });
    this.tile = made.exports.t;
    this.used = 0;
    [this.x, this.y] = [this.take(BLOCK * widest), this.take(BLOCK * (widest + OUTPUTS))];
  }

  /** Allocate `count` numbers; returns the index of the first. */
  take(count) {
    const at = this.used;
    this.used += count;
    const missing = 4 * this.used - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / 65536));
    this.numbers = new Float32Array(this.memory.buffer);
    return at;
  }
}

/** Make a Room; null without WebAssembly. */
export function roomFor(widest) {
  try {
    return new Room(widest);
  } catch {
    return null;
  }
}

/** Y = X Wᵀ + b, as a function of X and its number of rows. */
export function affineIn(room, weight, bias, inputs, outputs) {
  const panels = Math.ceil(outputs / OUTPUTS);
  const size = (inputs + 1) * OUTPUTS;
  const from = room.take(panels * size);
  for (let out = 0; out < outputs; out++) {
    const at = from + Math.floor(out / OUTPUTS) * size + (out % OUTPUTS);
    if (bias) room.numbers[at] = bias[out];
    for (let n = 0; n < inputs; n++) room.numbers[at + (n + 1) * OUTPUTS] = weight[out * inputs + n];
  }
  const wide = panels * OUTPUTS;
  return (x, rows) => {
    const { numbers, tile } = room;
    const y = new Float32Array(rows * outputs);
    for (let row = 0; row < rows; row += BLOCK) {
      const some = Math.min(BLOCK, rows - row);
      numbers.set(x.subarray(row * inputs, (row + some) * inputs), room.x);
      for (let panel = 0; panel < panels; panel++)
        for (let r = 0; r < some; r += ROWS) {
          const [of, into] = [room.x + r * inputs, room.y + r * wide + panel * OUTPUTS];
          tile(4 * of, 4 * (from + panel * size), 4 * into, inputs, 4 * inputs, 4 * wide);
        }
      for (let r = 0; r < some; r++) {
        const at = room.y + r * wide;
        y.set(numbers.subarray(at, at + outputs), (row + r) * outputs);
      }
    }
    return y;
  };
}
