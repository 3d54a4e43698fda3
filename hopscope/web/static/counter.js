// The random numbers of hopscope/tasks/counter.py, to the bit: number j of example i is a function
// of (seed, i, j). Keys are states of SplitMix64; normals come from Box–Muller, whose logarithm,
// sine and cosine are spelled out in operations that IEEE 754 fixes on every machine.

const GOLDEN = 0x9e3779b97f4a7c15n;
const FIRST = 0xbf58476d1ce4e5b9n;
const SECOND = 0x94d049bb133111ebn;
const LOW32 = 0xffffffffn;

const wrapped = (number) => BigInt.asUintN(64, number);

/** SplitMix64's finaliser, a bijection of 64 bits. */
export function mix(state) {
  state = wrapped((state ^ (state >> 30n)) * FIRST);
  state = wrapped((state ^ (state >> 27n)) * SECOND);
  return state ^ (state >> 31n);
}

/** The key that is reached from a seed, or from another key, through a path of whole numbers. */
export function keyOf(seed, ...path) {
  let state = mix(wrapped(BigInt(seed) * GOLDEN));
  for (const number of path) state = mix(state ^ wrapped(BigInt(number + 1) * GOLDEN));
  return state;
}

/** So many random numbers of 64 bits, without a sign. */
export function bits(key, count) {
  const found = new Array(count);
  for (let n = 0; n < count; n++) found[n] = mix(wrapped(key + BigInt(n + 1) * GOLDEN));
  return found;
}

/** So many whole numbers from 0 up to `below`, which is not among them. */
export function integers(key, count, below) {
  return bits(key, count).map((raw) => Number(((raw & LOW32) * BigInt(below)) >> 32n));
}

/** The order that sorts random numbers of 64 bits, as numbers with a sign. */
export function shuffled(key, count) {
  const raw = bits(key, count).map((number) => BigInt.asIntN(64, number));
  return raw.map((_, n) => n).sort((a, b) => compared(raw[a], raw[b]) || a - b);
}

export function compared(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** So many standard normal numbers. */
export function normals(key, count) {
  const found = new Float32Array(count + (count % 2));
  bits(key, found.length / 2).forEach((raw, n) => {
    const high = Number(raw >> 32n);
    const low = Number(raw & LOW32);
    let radius = Math.sqrt(-2 * logarithm((high + 0.5) * 2 ** -32));
    // 30 bits choose an angle within a quarter turn, the other two bits the quarter.
    const angle = ((low & 0x3fffffff) + 0.5) * ((Math.PI / 2) * 2 ** -30) - Math.PI / 4;
    if (low >>> 31) radius = -radius;
    const turned = (low >>> 30) & 1;
    found[2 * n] = radius * (turned ? -sine(angle) : cosine(angle));
    found[2 * n + 1] = radius * (turned ? cosine(angle) : sine(angle));
  });
  return found.subarray(0, count);
}

function polynomial(x, coefficients) {
  return coefficients.reduce((sum, coefficient) => sum * x + coefficient);
}

function factorial(n) {
  return n < 2 ? 1 : n * factorial(n - 1);
}

const ARTANH = [15, 13, 11, 9, 7, 5, 3, 1].map((odd) => 2 / odd);
const SINE = [6, 5, 4, 3, 2, 1, 0].map((n) => (-1) ** n / factorial(2 * n + 1));
const COSINE = [7, 6, 5, 4, 3, 2, 1, 0].map((n) => (-1) ** n / factorial(2 * n));

/** log(m·2^e) = e·log 2 + 2 artanh((m-1)/(m+1)), with m from √½ to √2. */
function logarithm(x) {
  let [mantissa, exponent] = parts(x);
  if (mantissa < Math.sqrt(0.5)) {
    mantissa *= 2;
    exponent -= 1;
  }
  const ratio = (mantissa - 1) / (mantissa + 1);
  return polynomial(ratio * ratio, ARTANH) * ratio + exponent * Math.LN2;
}

const word = new DataView(new ArrayBuffer(8));

/** x = m·2^e with m from ½ to 1, of a number that is not subnormal. */
function parts(x) {
  word.setFloat64(0, x);
  const top = word.getUint32(0);
  const exponent = ((top >>> 20) & 2047) - 1022;
  word.setUint32(0, (top & 0x800fffff) | (1022 << 20));
  return [word.getFloat64(0), exponent];
}

/** Taylor's series, exact to 1e-13 up to an eighth of a turn. */
function sine(x) {
  return polynomial(x * x, SINE) * x;
}

function cosine(x) {
  return polynomial(x * x, COSINE);
}
