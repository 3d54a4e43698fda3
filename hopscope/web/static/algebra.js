// Products, norms and the rest of a transformer's arithmetic, on flat arrays of float32, row by row.

/** Y = X Wᵀ + b for `rows` rows of X. Four rows of X meet four of W at a time, so that each number
 *  that is read takes part in four products. */
export function affine(x, rows, weight, bias, inputs, outputs, y = new Float32Array(rows * outputs)) {
  const fours = rows - (rows % 4);
  for (let row = 0; row < fours; row += 4) fourRows(x, row, weight, bias, inputs, outputs, y);
  for (let row = fours; row < rows; row++) oneRow(x, row, weight, bias, inputs, outputs, y);
  return y;
}

function fourRows(x, row, weight, bias, inputs, outputs, y) {
  const fours = outputs - (outputs % 4);
  const x0 = row * inputs, x1 = x0 + inputs, x2 = x1 + inputs, x3 = x2 + inputs;
  const y0 = row * outputs, y1 = y0 + outputs, y2 = y1 + outputs, y3 = y2 + outputs;
  for (let out = 0; out < fours; out += 4) {
    const w0 = out * inputs, w1 = w0 + inputs, w2 = w1 + inputs, w3 = w2 + inputs;
    let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    let c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    for (let n = 0; n < inputs; n++) {
      const a = x[x0 + n], b = x[x1 + n], c = x[x2 + n], d = x[x3 + n];
      const p = weight[w0 + n], q = weight[w1 + n], r = weight[w2 + n], s = weight[w3 + n];
      a0 += a * p; a1 += a * q; a2 += a * r; a3 += a * s;
      b0 += b * p; b1 += b * q; b2 += b * r; b3 += b * s;
      c0 += c * p; c1 += c * q; c2 += c * r; c3 += c * s;
      d0 += d * p; d1 += d * q; d2 += d * r; d3 += d * s;
    }
    const s0 = bias ? bias[out] : 0, s1 = bias ? bias[out + 1] : 0;
    const s2 = bias ? bias[out + 2] : 0, s3 = bias ? bias[out + 3] : 0;
    y[y0 + out] = a0 + s0; y[y0 + out + 1] = a1 + s1; y[y0 + out + 2] = a2 + s2; y[y0 + out + 3] = a3 + s3;
    y[y1 + out] = b0 + s0; y[y1 + out + 1] = b1 + s1; y[y1 + out + 2] = b2 + s2; y[y1 + out + 3] = b3 + s3;
    y[y2 + out] = c0 + s0; y[y2 + out + 1] = c1 + s1; y[y2 + out + 2] = c2 + s2; y[y2 + out + 3] = c3 + s3;
    y[y3 + out] = d0 + s0; y[y3 + out + 1] = d1 + s1; y[y3 + out + 2] = d2 + s2; y[y3 + out + 3] = d3 + s3;
  }
  for (let r = row; r < row + 4; r++) oneRow(x, r, weight, bias, inputs, outputs, y, fours);
}

function oneRow(x, row, weight, bias, inputs, outputs, y, first = 0) {
  for (let out = first; out < outputs; out++) {
    let sum = 0;
    for (let n = 0, at = row * inputs, w = out * inputs; n < inputs; n++) sum += x[at + n] * weight[w + n];
    y[row * outputs + out] = sum + (bias ? bias[out] : 0);
  }
}

/** Layer normalisation of every row, with gain and shift; the same 1e-5 as the model's. */
export function norm(x, rows, gain, shift, width) {
  const y = new Float32Array(rows * width);
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    let mean = 0, square = 0;
    for (let n = 0; n < width; n++) mean += x[at + n];
    mean /= width;
    for (let n = 0; n < width; n++) square += (x[at + n] - mean) ** 2;
    const scale = 1 / Math.sqrt(square / width + 1e-5);
    for (let n = 0; n < width; n++) y[at + n] = (x[at + n] - mean) * scale * gain[n] + shift[n];
  }
  return y;
}

/** GELU in place, by the error function itself and not by the formula with tanh. */
export function gelu(x) {
  for (let n = 0; n < x.length; n++) {
    const z = x[n];
    x[n] = z > 6 ? z : z < -6 ? 0 : z * normal(z);
  }
  return x;
}

/** The share of a standard normal law below z. Its Taylor series around the nearest of many points,
 *  to the third order, is exact to 1e-9. */
function normal(z) {
  const place = Math.round((z + 6) * POINTS);
  const from = place / POINTS - 6;
  const step = z - from;
  const slope = DENSITY[place];
  return SHARE[place] + slope * step * (1 - (step / 2) * (from - (step / 3) * (from * from - 1)));
}

const POINTS = 64;
const DENSITY = Float64Array.from({ length: 12 * POINTS + 1 }, (_, n) =>
  Math.exp(-((n / POINTS - 6) ** 2) / 2) / Math.sqrt(2 * Math.PI));
const SHARE = shares();

/** The integral of the density by Simpson's rule, from -6, below which lies a share of 1e-9. */
function shares() {
  const found = new Float64Array(DENSITY.length);
  for (let n = 1; n < found.length; n++) {
    const middle = Math.exp(-(((n - 0.5) / POINTS - 6) ** 2) / 2) / Math.sqrt(2 * Math.PI);
    found[n] = found[n - 1] + (DENSITY[n - 1] + 4 * middle + DENSITY[n]) / (6 * POINTS);
  }
  return found;
}

/** What is added in place: y += x. */
export function add(y, x) {
  for (let n = 0; n < y.length; n++) y[n] += x[n];
  return y;
}
