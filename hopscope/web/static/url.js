// @ts-check
// Converts the state of the page to the part of its address after #, and back. Names, not indices.

import { WAY, item, named } from "./changes.js";
import { hasHead } from "./paths.js";

export const START = {
  run: "",
  step: null,
  seed: null,
  off: [],
  as: "uniform",
  ex: 0,
  head: "",
  kind: "own",
  ghost: "",
  colour: "",
  path: "",
  pane: "",
  scale: "",
  asked: "",
  tokens: null,
  order: null,
  tour: 0,
};
const PLAIN = {
  head: /^\d+\.\d+$/,
  kind: /^(own|others)$/,
  ghost: /^[\w.-]{1,40}$/,
  colour: /^(moves|emerged|kind)$/,
  path: /^[^→]{1,60} → [^→]{1,60}$/, // of the seeds: source → destination
  pane: /^[a-z]{1,12}$/,
  scale: /^(linear|log)$/,
  asked: /^\S{1,40}$/, // for language models: the kind of question, or the exchanged symbol
  as: WAY,
};
const NUMBERS = ["step", "seed", "order", "ex", "tour"];
const MOST = 2 ** 31; // numbers are below this, as in hopscope/web/questions.py
const MOST_TOKENS = 4096; // as in hopscope/web/questions.py
const MOST_OFF = 4096; // more than a server accepts, which reports it; none may be dropped here

/** Parse an address into a state; invalid parts keep their defaults, and are added to `dropped`.
 *  @param {string} hash
 *  @param {string[]} dropped */
export function parse(hash, dropped = []) {
  const found = { ...START, off: [] };
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const run = /^run\/([^/]{1,200})$/.exec(path);
  if (run) found.run = decoded(run[1]);
  const asked = new URLSearchParams(query);
  for (const [name, pattern] of Object.entries(PLAIN)) {
    const text = asked.get(name);
    if (text !== null && pattern.test(text)) found[name] = text;
    else if (text) dropped.push(`${name}=${text}`);
  }
  for (const name of NUMBERS) {
    const text = asked.get(name) ?? "";
    if (/^\d{1,10}$/.test(text) && Number(text) < MOST) found[name] = Number(text);
    else if (text) dropped.push(`${name}=${text}`);
  }
  for (const text of (asked.get("off") ?? "").split(";").slice(0, MOST_OFF)) {
    const its = item(text, found.as);
    if (its) found.off.push(its);
    else if (text) dropped.push(`off=${text}`);
  }
  const tokens = asked.get("tokens");
  if (tokens !== null) found.tokens = tokens ? tokens.split(" ").slice(0, MOST_TOKENS) : [];
  return found;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** Find parts of a state that a run does not have: a patch that removes them, and their list in
 *  words. */
export function fitted({ off, head, path, step, ex, order, tokens }, about) {
  const { task, model, checkpoints } = about;
  const has = (its) =>
    task && hasHead(model, its) && (!its.destination || task.roles.includes(its.destination));
  const patch = { off: off.filter(has) };
  const dropped = off.filter((its) => !has(its)).map((its) => `off=${named(its)}`);
  const drop = (key, what) => {
    patch[key] = START[key];
    dropped.push(what);
  };
  if (head && !has(item(head) ?? {})) drop("head", `head=${head}`);
  const [source, destination] = path.split(" → ");
  if (path && (source === destination || ![source, destination].every((role) => task?.roles.includes(role))))
    drop("path", `path=${path}`);
  // Without a task (n-gram) the slider has more epochs than there are checkpoints.
  if (step !== null && (task ? !checkpoints.includes(step) : !checkpoints?.length)) drop("step", `step=${step}`);
  if (ex > lastExample(about)) drop("ex", `ex=${ex}`);
  if ((task?.carried || task?.given) && order !== null) drop("order", `order=${order}`);
  if (task?.given && tokens) drop("tokens", "tokens");
  return { patch, dropped };
}

/** The number of the last example (for a benchmark: question) that can be shown; a saved page has
 *  fewer than a server. */
export function lastExample({ task, lm }) {
  const count = task?.drawn ?? lm?.questions ?? Infinity;
  return ((task ?? lm)?.carried ?? count) - 1;
}

/** The address of a state, without default values. */
export function format(state) {
  const parts = [];
  const add = (name, value) => {
    const text = encodeURIComponent(value).replace(/%20/g, "+");
    parts.push(`${name}=${text.replace(/%3[ABD]/g, decodeURIComponent)}`);
  };
  for (const name of NUMBERS) if (state[name] !== START[name]) add(name, state[name]);
  if (state.off.length)
    add("off", state.off.map((its) => named(its) + (its.as === state.as ? "" : `=${its.as}`)).join(";"));
  for (const name of Object.keys(PLAIN)) if (state[name] !== START[name]) add(name, state[name]);
  if (state.tokens) add("tokens", state.tokens.join(" "));
  const run = state.run ? `run/${encodeURIComponent(state.run)}` : "";
  return `#/${run}${parts.length ? `?${parts.join("&")}` : ""}`;
}
