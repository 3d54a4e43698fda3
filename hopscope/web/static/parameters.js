// Parameters of the n-gram experiment at its recorded epochs, and names of symbols and sets of
// heads.

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export const ready = (state) => state.values && state.steps?.length;
export const epochs = (state) => [...state.values.epochs.data];
export const model = (state) => ({ ...state.about.ngram, sets: state.values.sets });
export const parents = (state) => state.about.ngram.parents;
export const setName = (set) => `{${set.map((head) => head + 1).join(",")}}`;

/** The name of a symbol: a, b, …, z, ba, bb, …, as in hopscope/tasks/rendering.py. */
export function letters(number) {
  const more = Math.floor(number / LETTERS.length);
  return (more ? letters(more) : "") + LETTERS[number % LETTERS.length];
}

/** The names of all symbols of the model. */
export const symbols = (state) => Array.from({ length: model(state).alphabet }, (_, n) => letters(n));

/** Does a sequence have spaces between its symbols? (If there are more symbols than letters.) */
export const spaced = (state) => model(state).alphabet > LETTERS.length;

/** Parameters at one recorded epoch, and the quantities computed from them: shares of the sets of
 *  heads (`shares`), and the attention of heads to lags (`copied`). */
export function at(state, n) {
  const its = (name) => {
    const { shape, data } = state.values[name];
    const size = data.length / shape[0];
    return [...data.subarray(n * size, (n + 1) * size)];
  };
  const byHead = (name) => {
    const lags = state.values[name].shape.at(-1);
    const all = its(name);
    return Array.from({ length: all.length / lags }, (_, head) => all.slice(head * lags, (head + 1) * lags));
  };
  const [a] = its("a");
  return { c: its("c"), w: byHead("w"), a, shares: its("shares"), copied: byHead("copied") };
}

/** Is this the set of the parents' heads (head n starts at lag n), which the theory predicts to
 *  win? */
export function isParents(state, set) {
  return set.map((head) => head + 1).join() === [...parents(state)].sort((a, b) => a - b).join();
}
