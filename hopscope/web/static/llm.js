// Benchmarks of language models.
import { Pane } from "./pane.js";
export function llmPane(state) {
  const pane = new Pane(state, "llm", "Accuracy");
  pane.fits = (about) => about.kind === "llm";
  return pane;
}
