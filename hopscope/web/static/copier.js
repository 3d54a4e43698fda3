// The two-attention-layer model of the n-gram experiment, one sequence at a time (Chen et al. 2024).
// Head h copies symbols of the window by softmax(w^h); positions are as similar as
// Σ_S c_S² Π_{h∈S} ⟨v_l^h, v_q^h⟩ / Σ_S c_S²; the answer is the mean symbol,
// by softmax(a · similarity).

function softmax(values) {
  const most = Math.max(...values);
  const found = values.map((its) => Math.exp(its - most));
  const sum = found.reduce((a, b) => a + b, 0);
  return found.map((its) => its / sum);
}

/** The model's answer to a sequence, and its attention to every position. Parameters: `shares` of
 *  the sets of heads, attention of heads to lags (`copied`), and a. */
export function predict(tokens, alphabet, { shares, copied, a }, { sets, unit_copies: unit }) {
  const window = copied[0].length;
  const copies = (place) =>
    copied.map((look) => {
      const found = new Array(alphabet).fill(0);
      look.forEach((share, n) => {
        found[tokens[place - 1 - n]] += share;
      });
      const size = unit ? Math.hypot(...found) : 1;
      return found.map((its) => its / size);
    });
  const asked = copies(tokens.length);
  const similar = [];
  for (let place = window; place < tokens.length; place++) {
    const inner = copies(place).map((copy, head) =>
      copy.reduce((sum, its, n) => sum + its * asked[head][n], 0),
    );
    similar.push(
      sets.reduce(
        (sum, set, n) => sum + shares[n] * set.reduce((product, head) => product * inner[head], 1),
        0,
      ),
    );
  }
  return answered(tokens, alphabet, window, softmax(similar.map((its) => a * its)));
}

/** The generalised induction head: the mean symbol of positions with the same parents as the query. */
export function inductionHead(tokens, alphabet, window, parents) {
  const same = [];
  for (let place = window; place < tokens.length; place++)
    same.push(parents.every((lag) => tokens[place - lag] === tokens[tokens.length - lag]) ? 1 : 0);
  const found = same.reduce((a, b) => a + b, 0);
  const weights = same.map((its) => (found ? its / found : 1 / same.length));
  return { ...answered(tokens, alphabet, window, weights), matches: found };
}

function answered(tokens, alphabet, window, weights) {
  const answer = new Array(alphabet).fill(0);
  const attention = new Array(tokens.length).fill(0);
  weights.forEach((share, n) => {
    answer[tokens[window + n]] += share;
    attention[window + n] = share;
  });
  return { answer, attention };
}
