// Losses of a training as curves.

import { ofHop } from "./colours.js";

const WINDOW = 25;

/** Training losses, smoothed and thinned, as lines; validation as dots. */
export function lossSeries({ trainSteps, train, validationSteps, validation }, member, hops) {
  const made = [];
  hops.forEach((name, n) => {
    const ys = smoothed(trainSteps.map((_, at) => train(at, member, n)));
    const by = Math.max(1, Math.floor(ys.length / 700));
    made.push({
      name,
      hop: n + 1,
      colour: ofHop(n),
      thin: true,
      xs: trainSteps.filter((_, at) => at % by === 0),
      ys: ys.filter((_, at) => at % by === 0),
    });
    made.push({
      name: `${name}, validation`,
      hop: n + 1,
      colour: ofHop(n),
      xs: validationSteps,
      ys: validationSteps.map((_, at) => validation(at, member, n)),
      dots: validationSteps.length < 120,
    });
  });
  return made;
}

function smoothed(values) {
  let sum = 0;
  const found = [];
  const held = [];
  for (const value of values) {
    held.push(value);
    sum += value;
    if (held.length > WINDOW) sum -= held.shift();
    found.push(sum / held.length);
  }
  return found;
}
