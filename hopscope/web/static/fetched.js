// Converts the arrays of a run, by name, into values of the state.

import { Contents, Maps } from "./maps.js";

/** Each function takes the arrays and the description of the run, and returns a patch of the state. */
export const FETCHED = {
  losses: (its) => ({ losses: lossesOf(its) }),
  maps: (its) => ({ maps: new Maps(plain(its), its.about.roles) }),
  contents: (its, { checkpoints }) => ({ contents: new Contents(plain(its), its.about.roles, checkpoints) }),
  emergence: (its, about) => ({ about: { ...about, ...its.about } }),
  findings: (its) => ({ findings: its.about }),
  // The slider of an n-gram run stands at every recorded epoch; at some of them is a checkpoint.
  parameters: (its) => {
    const values = { ...plain(its), sets: its.about.sets };
    return { values, steps: [...values.epochs.data] };
  },
};

/** Tensors by name. */
export function plain({ tensors }) {
  return Object.fromEntries(tensors);
}

/** Losses [point, seed, hop] and their steps; empty for splits that were not measured. */
export function lossesOf(its) {
  const { train, validation, train_steps, validation_steps } = plain(its);
  const value =
    ({ shape: [, seeds, hops], data }) =>
    (at, member, hop) =>
      data[(at * seeds + Math.min(member, seeds - 1)) * hops + hop];
  return {
    hops: Math.max(train.shape[2], validation.shape[2]),
    trainSteps: [...train_steps.data],
    validationSteps: [...validation_steps.data],
    train: value(train),
    validation: value(validation),
  };
}
