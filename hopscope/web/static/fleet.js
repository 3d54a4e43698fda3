// Several seeds of one recipe: one path in all of them, side by side.

import { Pane } from "./pane.js";

export function fleetPane(state) {
  const pane = new Pane(state, "fleet", "Seeds");
  pane.fits = (about) => Boolean(about.task) && (about.seeds ?? []).length > 1;
  return pane;
}
