// Parameters of the n-gram experiment at its recorded epochs, and what sets of heads are called.

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export const ready = (state) => state.about?.kind === "ngram" && state.values && state.steps?.length;
export const epochs = (state) => [...(state.values.epochs ?? state.values.steps).data];
export const model = (state) => state.about.ngram;
export const parents = (state) => state.about.ngram.parents;
export const setName = (set) => `{${set.map((head) => head + 1).join(",")}}`;

/** a, b, …, z, ba, bb, …: what a symbol is called, as in hopscope/tasks/spelled.py. */
export function letters(number) {
  const more = Math.floor(number / LETTERS.length);
  return (more ? letters(more) : "") + LETTERS[number % LETTERS.length];
}

/** What all symbols of the model are called. */
export const symbols = (state) => Array.from({ length: model(state).alphabet }, (_, n) => letters(n));

/** Are there more of them than letters? Then a sequence has spaces between its symbols. */
export const spaced = (state) => model(state).alphabet > LETTERS.length;

/** Parameters at one recorded epoch. */
export function at(state, n) {
  const { c, w, a } = state.values;
  const sizes = [c.shape.at(-1), w.shape.at(-2), w.shape.at(-1)];
  const lags = (head) => [
    ...w.data.slice((n * sizes[1] + head) * sizes[2], (n * sizes[1] + head + 1) * sizes[2]),
  ];
  return {
    c: [...c.data.slice(n * sizes[0], (n + 1) * sizes[0])],
    w: Array.from({ length: sizes[1] }, (_, head) => lags(head)),
    a: a.data[n],
  };
}

/** The head that starts at a lag: the set of the parents' heads is what the theory says wins. */
export function isParents(state, set) {
  return set.map((head) => head + 1).join() === [...parents(state)].sort((a, b) => a - b).join();
}
