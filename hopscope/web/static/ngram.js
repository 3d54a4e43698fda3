// The n-gram experiment.
import { Pane } from "./pane.js";
export function ngramPanes(state) {
  const pane = new Pane(state, "ngram", "Parameters");
  pane.fits = (about) => about.kind === "ngram";
  return [pane];
}
