// Products, norms and the rest of a transformer's arithmetic, on flat arrays of float32, row by row.

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

/** GELU in place, by the error function itself and not by the formula with tanh: between points of a
 *  table, exact to 1e-6. */
export function gelu(x) {
  for (let n = 0; n < x.length; n++) {
    const place = (x[n] + FAR) * POINTS;
    if (place >= LAST) continue; // the number itself
    const before = Math.trunc(place);
    x[n] = place > 0 ? TABLE[before] + (place - before) * (TABLE[before + 1] - TABLE[before]) : 0;
  }
  return x;
}

const [FAR, POINTS] = [6, 1024]; // a table from -6 to 6, so many points to a unit
const LAST = 2 * FAR * POINTS;
const TABLE = gelus();

/** z times the share of a standard normal law below z: its density is added up by Simpson's rule from
 *  -6, below which lies a share of 1e-9. */
function gelus() {
  const density = (n) => Math.exp(-((n / POINTS - FAR) ** 2) / 2) / Math.sqrt(2 * Math.PI);
  const found = new Float32Array(LAST + 1);
  for (let n = 1, share = 0; n <= LAST; n++) {
    share += (density(n - 1) + 4 * density(n - 0.5) + density(n)) / (6 * POINTS);
    found[n] = (n / POINTS - FAR) * share;
  }
  return found;
}

/** What is added in place: y += x. */
export function add(y, x) {
  for (let n = 0; n < y.length; n++) y[n] += x[n];
  return y;
}
