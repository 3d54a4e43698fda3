// What gives the numbers of a pane elsewhere: a command for a terminal, and lines of Python.

import { asFlag } from "./url.js";

/** Which model is looked at; what stands at its start is left out. */
function which({ step, steps, at, seed }) {
  const found = { step: step === null ? undefined : steps[at], seed: seed ?? undefined };
  return Object.entries(found).filter(([, value]) => value !== undefined);
}

/** The same as the flags of a command. */
export function flags(state) {
  return which(state)
    .map(([name, value]) => ` --${name} ${value}`)
    .join("");
}

const given = (fields) => fields.map(([name, value]) => `${name}=${value}`);

/** A text, or several, as Python writes them. */
const text = (its) => JSON.stringify(its);
const texts = (all) => `(${all.map((its) => `${text(its)},`).join(" ")})`;

/** What gives the role map of a head. */
export function ofMap(state, kind, [layer, head]) {
  const { name } = state.about;
  const loaded = `hopscope.load(${[text(name), ...given(which(state))].join(", ")})`;
  return {
    shell: `hopscope maps ${name}${flags(state)} --json`,
    python: `import hopscope\n${loaded}.maps().${kind}[${layer}, ${head}]`,
  };
}

/** What gives the attention of a head in the example. A command draws it as it is alone; in Python the
 *  question is the page's own. */
export function ofExample(state, [layer, head]) {
  const { about, ex, tokens, order, off } = state;
  const changed = off.length ? [["changes", texts(off.map(asFlag))]] : [];
  const typed = tokens ? [["tokens", texts(tokens)]] : [];
  const shuffled = order === null ? [] : [["order", order]];
  const asked = given([["index", ex], ...which(state), ...changed, ...typed, ...shuffled]);
  const drawn = ![changed, typed, shuffled].some((its) => its.length);
  return {
    shell: drawn ? `hopscope maps ${about.name}${flags(state)} --example ${ex} --json` : "",
    python: [
      "from hopscope.store import Store",
      "from hopscope.web.questions import ExampleQuestion",
      "from hopscope.web.tensors import unpacked",
      "from hopscope.web.views import Views",
      `asked = ExampleQuestion(${asked.join(", ")})`,
      `arrays, words = unpacked(Views(Store()).example(${text(about.id)}, asked))`,
      `arrays["${off.length ? "changes." : ""}attention"][${layer}, ${head}]`,
    ].join("\n"),
  };
}

/** What gives the losses that the training noted on its validation examples. The gallery is in no
 *  store that SQL asks. */
export function ofNoted({ name, seeds }, member, step) {
  const where = `run = '${name}' and seed = ${seeds[member]} and split = 'validation' and step = ${step}`;
  return {
    shell: name.startsWith("gallery/")
      ? ""
      : `hopscope sql "select hop, loss from metrics where ${where} order by hop"`,
    python: [
      "import hopscope",
      `steps, losses = hopscope.load(${text(name)}).run.losses("validation")`,
      `losses[steps == ${step}, ${member}]`,
    ].join("\n"),
  };
}

/** What gives losses with heads changed; with none, those of the model stand above those of a head. */
export function ofChanged(state, examples) {
  const { about, off } = state;
  const heads = off.length ? off.map(asFlag) : ["0.0=uniform"];
  const asked = `${heads.map((its) => ` --head "${its}"`).join("")} --examples ${examples}`;
  return { shell: `hopscope ablate ${about.name}${flags(state)}${asked}`, python: "" };
}
