// The command line and the lines of Python that give a pane's numbers; empty if there are none.

import { asFlag } from "./changes.js";

/** The step and seed of the shown model, without default values. */
function which({ about, step, steps, at, seed }) {
  if (about.named) return [];
  const member = about.member ? about.seed : undefined; // a saved page may have no seed
  const found = { step: step === null ? undefined : steps[at], seed: seed ?? member };
  return Object.entries(found).filter(([, value]) => value !== undefined);
}

/** A command about the shown model of a run, or of a study that was opened by a command. A study
 *  that was opened in Python has none. */
function command(state, name, ...more) {
  const { named = [state.about.name] } = state.about;
  const flags = which(state).flatMap(([flag, value]) => [`--${flag}`, value]);
  return named.length ? shell("hopscope", name, ...named, ...flags, ...more) : "";
}

/** Lines of Python about the shown model; a study that was opened by a command has none. */
function lines(state, asked, said = (its) => its) {
  const { named, name } = state.about;
  if (named) return named.length ? "" : said(`study.${asked}`);
  const loaded = `hopscope.load(${[text(name), ...given(which(state))].join(", ")})`;
  return `import hopscope\n${said(`${loaded}.${asked}`)}`;
}

/** Lines of Python about the whole run. */
const ofRun = ({ name }, asked) => `import hopscope\nhopscope.open_run(${text(name)}).${asked}`;

/** The command that shows the whole run, with these flags, beside lines of Python. */
const showing = ({ name }, python, ...flags) => ({ shell: shell("hopscope", "show", name, ...flags), python });

const given = (fields) => fields.map(([name, value]) => `${name}=${value}`);

/** A command for a shell, each word quoted as by Python's `shlex.quote`. Empty if a word has a
 *  control character: pasted into a terminal, it would act as a key (Ctrl-C) even within quotes. */
export function shell(...words) {
  const all = words.map(String);
  if (all.some((its) => /\p{Cc}/u.test(its))) return "";
  return all
    .map((its) => (/^[\w@%+=:,./-]+$/.test(its) ? its : `'${its.replaceAll("'", `'"'"'`)}'`))
    .join(" ");
}

/** A text as a Python literal in ASCII: a JSON string, with \U… for letters beyond U+FFFF. */
export function text(its) {
  return JSON.stringify(its).replace(/[^ -~]/gu, (letter) => {
    const code = letter.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}
const texts = (all) => `(${all.map((its) => `${text(its)},`).join(" ")})`;

/** Commands for the role map of a head. */
export function ofMap(state, kind, { layer, head }) {
  return {
    shell: command(state, "attention", "--json"),
    python: lines(state, `attention().${kind}[${layer}, ${head}]`),
  };
}

/** Commands that find or print the circuit; a study's circuit was already found. */
export function ofCircuit({ about, seed }) {
  const whole = { about, seed, step: null };
  const more = about.named ? ["--save", "circuit.json"] : [];
  return {
    shell: about.named && about.circuit ? "" : command(whole, "circuit", ...more),
    python: lines(whole, "circuit", (its) => `print(${its})`),
  };
}

/** Commands for the emergence of a training if it was measured, otherwise for its losses. */
export function ofTraining({ about, seed }) {
  if (about.named) return { shell: "", python: "" };
  if (about.ngram) return { ...ofNgram(about), python: ofRun(about, "losses()") };
  const followed = about.circuit && about.arrays.includes("emergence");
  const whole = { about, seed, step: null };
  return followed
    ? { shell: command(whole, "emergence", "--json"), python: lines(whole, "emergence().order") }
    : showing(about, lines(whole, "run.losses()"), "--json");
}

/** Commands for the parameters of an n-gram model: its `course` in training, or its last `state`. */
export const ofNgram = (about, asked) =>
  showing(about, ofRun(about, `${asked}(${about.seed})`), "--figure", "stages.svg");

/** Commands for the accuracies of a language model. */
export function ofAccuracies(about) {
  const asked = `results(hopscope.open_run(${text(about.name)}).folder)`;
  return showing(about, ["import hopscope", "from hopscope.lm.results import results", asked].join("\n"));
}

/** Lines of Python for the answers of a language model; there is no command. */
export const ofAnswers = (about) => ({ shell: "", python: ofRun(about, "answers") });

/** Commands for a circuit of a language model. */
export const ofFindings = (about) => showing(about, ofRun(about, "findings.verdict()"));

/** What gives the attention of a head in the example. A command draws it as it is alone; in Python the
 *  question is the page's own. */
export function ofExample(state, { layer, head }) {
  const { about, ex, tokens, order, off } = state;
  const changed = off.length ? [["changes", texts(off.map(asFlag))]] : [];
  const typed = tokens ? [["tokens", texts(tokens)]] : [];
  const shuffled = order === null ? [] : [["order", order]];
  const asked = given([["index", ex], ...which(state), ...changed, ...typed, ...shuffled]);
  const drawn = ![changed, typed, shuffled].some((its) => its.length);
  return {
    shell: drawn ? command(state, "attention", "--example", ex, "--json") : "",
    python: about.named ? "" : [
      "from hopscope.store import Store",
      "from hopscope.web.questions import ExampleQuestion",
      "from hopscope.web.tensors import unpacked",
      "from hopscope.web.views import Views",
      `asked = ExampleQuestion(${asked.join(", ")})`,
      `shown = Views(Store()).shown(${text(about.id)}, asked.seed)`,
      "arrays, words = unpacked(shown.example(asked))",
      `arrays["${off.length ? "changes." : ""}attention"][${layer}, ${head}]`,
    ].join("\n"),
  };
}

/** Commands for the validation losses recorded in training. SQL does not query the gallery. */
export function ofNoted({ name, seed, member }, step) {
  const run = name.replaceAll("'", "''");
  const where = `run = '${run}' and seed = ${seed} and split = 'validation' and step = ${step}`;
  return {
    shell: name.startsWith("gallery/")
      ? ""
      : shell("hopscope", "sql", `select hop, loss from metrics where ${where} order by hop`),
    python: [
      "import hopscope",
      `steps, losses = hopscope.load(${text(name)}).run.losses("validation")`,
      `losses[steps == ${step}, ${member}]`,
    ].join("\n"),
  };
}

/** Commands for the attention between two roles in each head of one model of a fleet. */
export function ofSeed({ name }, seed, { destination, source }) {
  const between = `between(${text(destination)}, ${text(source)})`;
  return {
    shell: shell("hopscope", "attention", name, "--seed", seed, "--json"),
    python: `import hopscope\nhopscope.load(${text(name)}, seed=${seed}).attention().${between}`,
  };
}

/** Commands for losses with heads changed; without changes, a table whose first row is the model. */
export function ofChanged(state, examples) {
  const { about, off } = state;
  const heads = off.length ? off.map(asFlag) : ["0.0=uniform"];
  const asked = [...heads.flatMap((its) => ["--head", its]), "--examples", examples];
  const python = about.named ? lines(state, `ablate(${heads.map(text).join(", ")}, examples=${examples})`) : "";
  return { shell: command(state, "ablate", ...asked), python };
}
