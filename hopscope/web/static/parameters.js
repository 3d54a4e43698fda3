// Parameters of the n-gram experiment at its recorded epochs, and what sets of heads are called.

export const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export const ready = (state) => state.about?.kind === "ngram" && state.values && state.steps?.length;
export const epochs = (state) => [...(state.values.epochs ?? state.values.steps).data];
export const model = (state) => state.about.ngram;
export const parents = (state) => state.about.ngram.parents;
export const setName = (set) => `{${set.map((head) => head + 1).join(",")}}`;

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
