// Parameters of the n-gram experiment at its recorded epochs, and what sets of heads are called.

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export const ready = (state) => state.values && state.steps?.length;
export const epochs = (state) => [...(state.values.epochs ?? state.values.steps).data];
export const model = (state) => ({ ...state.about.ngram, sets: state.values.sets });
export const parents = (state) => state.about.ngram.parents;
export const setName = (set) => `{${set.map((head) => head + 1).join(",")}}`;

/** a, b, …, z, ba, bb, …: what a symbol is called, as in hopscope/tasks/rendering.py. */
export function letters(number) {
  const more = Math.floor(number / LETTERS.length);
  return (more ? letters(more) : "") + LETTERS[number % LETTERS.length];
}

/** What all symbols of the model are called. */
export const symbols = (state) => Array.from({ length: model(state).alphabet }, (_, n) => letters(n));

/** Are there more of them than letters? Then a sequence has spaces between its symbols. */
export const spaced = (state) => model(state).alphabet > LETTERS.length;

/** Parameters at one recorded epoch, and what the model makes of them: shares of the sets of heads,
 *  and what each head copies. */
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

/** The head that starts at a lag: the set of the parents' heads is what the theory says wins. */
export function isParents(state, set) {
  return set.map((head) => head + 1).join() === [...parents(state)].sort((a, b) => a - b).join();
}
