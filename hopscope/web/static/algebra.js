// The arithmetic of a transformer (matrix products, norms, GELU) on flat float32 arrays, row by
// row.

/** Y = X Wᵀ + b, as a function of X and its number of rows. */
export function affine(weight, bias, inputs, outputs) {
  return (x, rows) => {
    const y = new Float32Array(rows * outputs);
    for (let row = 0; row < rows; row++)
      for (let out = 0; out < outputs; out++) {
        let sum = bias ? bias[out] : 0;
        for (let n = 0, at = row * inputs, w = out * inputs; n < inputs; n++) sum += x[at + n] * weight[w + n];
        y[row * outputs + out] = sum;
      }
    return y;
  };
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

/** Exact GELU (not the tanh formula) in place, interpolated between the points of a table, with an
 *  error below 1e-6. */
export function gelu(x) {
  for (let n = 0; n < x.length; n++) {
    const place = (x[n] + FAR) * POINTS;
    if (place >= LAST) continue; // the number itself
    const before = Math.trunc(place);
    x[n] = place > 0 ? TABLE[before] + (place - before) * (TABLE[before + 1] - TABLE[before]) : 0;
  }
  return x;
}

const [FAR, POINTS] = [6, 1024]; // the table is from -6 to 6, with 1024 points per unit
const LAST = 2 * FAR * POINTS;
const TABLE = gelus();

/** The table of z Φ(z), with the normal distribution Φ by Simpson's rule from -6 (Φ(-6) is 1e-9). */
function gelus() {
  const density = (n) => Math.exp(-((n / POINTS - FAR) ** 2) / 2) / Math.sqrt(2 * Math.PI);
  const found = new Float32Array(LAST + 1);
  for (let n = 1, share = 0; n <= LAST; n++) {
    share += (density(n - 1) + 4 * density(n - 0.5) + density(n)) / (6 * POINTS);
    found[n] = (n / POINTS - FAR) * share;
  }
  return found;
}

/** Add in place: y += x. */
export function add(y, x) {
  for (let n = 0; n < y.length; n++) y[n] += x[n];
  return y;
}
