// Events of a training: paths that emerged, hops that were learned, stages that began.

import { arrows } from "./paths.js";

/** The events of a training in order: a name, (of hops and stages) a longer one, and a sentence. */
export function events(about) {
  if (!about.task) return stages(about);
  const paths = arrows(about)
    .filter((its) => its.emerged !== null)
    .map((its) => ({
      step: its.emerged,
      name: `${its.layer}.${its.head}`,
      text: `${its.key} emerged`,
      path: its,
    }));
  const hops = (about.learned ?? []).map((step, n) => ({
    step,
    name: String(about.task.asked[n]),
    long: `${about.task.hops[n]} learned`,
    text: `${about.task.hops[n]} is learned`,
    hop: n,
  }));
  return [...paths, ...hops].filter((its) => its.step !== null).sort((a, b) => a.step - b.step);
}

/** The beginnings of the stages of an n-gram training. */
function stages(about) {
  let from = 0;
  return (about.ngram?.stages ?? []).map(({ trains, epochs }, n) => {
    const long = `stage ${trains}`;
    const found = { step: from, name: trains, long, text: `${long} begins`, hop: n };
    from += epochs;
    return found;
  });
}
