// Converts the arrays of a run, by name, into values of the state.

import { Contents, Maps } from "./maps.js";

/** Each function takes the arrays and the description of the run, and returns a patch of the state. */
export const FETCHED = {
  losses: (its) => ({ losses: lossesOf(its) }),
  maps: (its, { task }) => ({ maps: new Maps(plain(its), its.about?.roles ?? task.roles) }),
  contents: (its, { task, checkpoints }) => ({
    contents: new Contents(plain(its), its.about?.roles ?? task.roles, checkpoints),
  }),
  emergence: ({ about: { paths, emerged } }, about) => ({
    about: { ...about, emerged: Object.fromEntries(paths.map((path, n) => [path, emerged[n]])) },
  }),
  findings: (its) => ({ findings: its.about }),
  parameters: (its) => ({ values: { ...plain(its), sets: its.about.sets } }),
};

/** Tensors by name. */
function plain({ tensors }) {
  return Object.fromEntries(tensors);
}

/** Losses [point, seed, hop] and their steps; empty for splits that were not measured. */
export function lossesOf(its) {
  const found = plain(its);
  const list = (name) => [...(found[name]?.data ?? [])];
  const value =
    ({ shape: [, seeds, hops], data }) =>
    (at, member, hop) =>
      data[(at * seeds + Math.min(member, seeds - 1)) * hops + hop];
  const steps = list("steps");
  const none = { shape: [0, 1, 1], data: [] };
  const [train, validation] = [found.train ?? none, found.validation ?? none];
  return {
    hops: Math.max(train.shape[2], validation.shape[2]),
    trainSteps: found.train_steps ? list("train_steps") : steps,
    validationSteps: found.validation_steps ? list("validation_steps") : steps,
    train: value(train),
    validation: value(validation),
  };
}
