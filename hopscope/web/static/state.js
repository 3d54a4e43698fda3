// @ts-check
// The state of the page: values from the address (view) and fetched values (data). A function that
// draws registers the keys on which it depends, and is called when one of them changes.

import { asFlag } from "./changes.js";
import { gives } from "./source.js";
import { START, fitted, format, parse } from "./url.js";

const REST = 120; // milliseconds without a change, after which the page is at rest
const VIEW = Object.keys(START);

/**
 * One thing that is switched off: a head, or (with a destination) one row of it.
 * @typedef {{layer: number, head: number, destination: string, as: string}} Change
 * @typedef {{layer?: number, head?: number, destination?: string, source?: string, hop?: number, chain?: number}} Point
 */

/** State of one model, which begins anew when another is opened. */
export const OF_MODEL = {
  // Arrays of the run (fetched.js); null until they are fetched.
  ...{ losses: null, maps: null, contents: null, fleet: null, findings: null, values: null },
  // Answers: to the example (of a benchmark: question), to what is switched off (its losses; its
  // squares), and streams.
  ...{ example: null, question: null, answer: null, cut: null, overTime: null, costs: null },
  // Why losses, squares or an example cannot be measured.
  ...{ refused: "", unmeasured: "", unanswered: "" },
  asking: false, // are losses being measured?
  /** What is pointed at. @type {Point | null} */
  point: null,
  // A cell of the map, a token, a pair of tokens.
  ...{ spot: null, hover: null, pair: null },
};
/** State that is not in the address: fetched values, open requests, the pointer. */
const DATA = {
  /** The run's description from hopscope/web/views.py. @type {any} */
  about: null,
  /** The run's checkpoints. @type {number[] | null} */
  steps: null,
  ...OF_MODEL,
  // Activity: is a run being opened, which streams are open, is it playing?
  ...{ opening: false, working: "", playing: false },
  /** The error line. @type {{text: string, kind?: string} | null} */
  error: null,
  // The list of runs: their number, and the one that changed.
  ...{ listed: 0, stale: null },
  // Is there a server; the theme, whose change redraws everything.
  ...{ alive: true, theme: "" },
  /** How often the page came to rest: nothing had changed for a moment. */
  rested: 0,
};
const KEYS = new Set([...VIEW, ...Object.keys(DATA)]);

export class State {
  constructor() {
    /** @type {string[]} Invalid parts of the address, not reported yet. */
    this.dropped = [];
    Object.assign(this, DATA, parse(location.hash, this.dropped));
    /** @type {{keys: string[], run: (keys: Set<string>) => void}[]} */
    this.watchers = [];
    this.changed = new Set();
    /** @type {Change[][]} */
    this.undone = [];
    this.later = 0;
    this.waiting = false;
    this.rests = 0;
    this.near = ""; // the pane that was pointed at last
    this.letters = true; // are shortcuts of one character on?
    Object.seal(this);
    addEventListener("popstate", () => this.goTo(location.hash));
    addEventListener("hashchange", () => this.goTo(location.hash));
  }

  /** Take the state from an address that the user typed, pasted or went back to. An address with a
   *  token, or a word for one, is of a new server: the page is reloaded. */
  goTo(address) {
    if (gives(address)) return location.reload();
    this.dropped = [];
    this.mend("address");
    const found = parse(address, this.dropped);
    const stays = this.about?.id === found.run && this.seed === found.seed; // else opened first
    if (!same(this.off, found.off)) this.undone = []; // the browser's history replaces undo
    this.set(found, "none");
    if (stays) this.fit(this.about);
  }

  /** Remove parts of the state that this run does not have, and report them. */
  fit(about) {
    const { patch, dropped } = fitted(this, about);
    const all = [...this.dropped, ...dropped];
    this.dropped = [];
    if (!all.length) return;
    const told = all.join(", ").slice(0, 120);
    const text = `Parts of the address were left out, since this run does not have them: ${told}`;
    this.set(patch, "none");
    this.fail("address", text);
    this.remember("replace");
  }

  /** Show an error line until something of the same kind succeeds (`mend`). */
  fail(kind, text) {
    this.set({ error: { text, kind } }, "none");
  }

  mend(kind) {
    if (this.error?.kind === kind) this.set({ error: null }, "none");
  }

  /** Call `run(keys)` once a frame when one of the keys changed. */
  watch(keys, run) {
    const its = keys.split(" ");
    its.forEach(known);
    this.watchers.push({ keys: its, run });
  }

  /** Change some keys. `how` updates the history: a new entry (push), the same one (replace), none. */
  set(patch, how = "push") {
    if (how !== "none" && this.leaving) return;
    if (how === "push") {
      this.remembered(); // a waiting change belongs to the current entry
      this.mend("address");
    }
    let seen = false;
    for (const [key, value] of Object.entries(patch)) {
      known(key);
      if (this[key] === value || (VIEW.includes(key) && same(this[key], value))) continue;
      this[key] = value;
      this.changed.add(key);
      seen ||= VIEW.includes(key);
    }
    if (seen && how !== "none") this.remember(how);
    if (this.changed.size && !this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => this.tell());
    }
  }

  tell() {
    const keys = this.changed;
    this.changed = new Set();
    this.waiting = false;
    for (const { keys: wanted, run } of this.watchers)
      if (wanted.some((key) => keys.has(key))) this.draw(() => run(keys));
    if (!keys.has("rested")) this.restSoon();
  }

  /** Texts that are not needed in every frame (the panes' commands) are written at rest. */
  restSoon() {
    clearTimeout(this.rests);
    this.rests = setTimeout(() => {
      this.rests = 0;
      this.set({ rested: this.rested + 1 }, "none");
    }, REST);
  }

  /** Run a drawing function; an error becomes a line on the page. */
  draw(run) {
    try {
      run();
    } catch (error) {
      console.error(error);
      this.fail("", `a part of this page could not be drawn: ${error.message}`);
    }
  }

  /** Update the address. Browsers allow about a hundred changes a minute, so "replace" is delayed, as
   *  is a "push" that the browser refuses (WebKit, after a hundred in ten seconds). */
  remember(how) {
    if (location.protocol === "about:") return; // a frame with srcdoc has no address
    const address = format(this);
    if (address === location.hash) return;
    clearTimeout(this.later);
    this.later = how === "push" && written("pushState", address) ? 0 : this.soon();
  }

  soon() {
    return setTimeout(() => this.remembered(), 150);
  }

  /** Write a delayed address now. */
  remembered() {
    if (!this.later) return;
    clearTimeout(this.later);
    this.later = written("replaceState", format(this)) ? 0 : this.soon();
  }

  /** Switch an item off, or on again if it or its whole head is off. A head that is switched off as
   *  a whole replaces its rows in the list. */
  toggle({ layer, head, destination = "" }) {
    if (this.isOff(layer, head, destination))
      return this.change(this.off.filter((its) => !covers(its, { layer, head, destination })));
    const others = this.off.filter((its) => destination || its.layer !== layer || its.head !== head);
    this.change([...others, { layer, head, destination, as: this.as }]);
  }

  /** Set the list of what is off; the earlier list is kept for undo. */
  change(list) {
    const off = list.map(({ layer, head, destination = "", as }) => ({ layer, head, destination, as })); // as parsed
    const before = this.off;
    this.set({ off });
    if (this.off !== before) this.undone.push(before);
  }

  undo() {
    if (this.undone.length) this.set({ off: this.undone.pop() });
  }

  /** The pointer or the focus is on this: a head, one of its arrows, a hop. */
  enter(point) {
    this.set({ point }, "none");
  }

  /** The pointer or the focus has left this. */
  leave(point) {
    if (this.point === point) this.set({ point: null }, "none");
  }

  /** Is this row of a head (or with no destination: the whole head) switched off? */
  isOff(layer, head, destination = "") {
    return this.off.some((its) => covers(its, { layer, head, destination }));
  }

  /** Which model is shown: its checkpoint, its seed, and what is off, as a text. */
  get which() {
    return JSON.stringify([this.steps?.[this.at], this.seed, this.off.map(asFlag)]);
  }

  /** Is the answer of the model that is shown? */
  get fits() {
    return this.answer?.of === this.which;
  }

  /** Is the old run still shown while a new one is opened? Then changes are ignored, because they
   *  would go into the address of the new run. */
  get leaving() {
    return Boolean(this.about && this.run) && this.about.id !== this.run;
  }

  /** Go to the checkpoint with this index, or to the nearest one. */
  moveTo(number) {
    const steps = this.steps ?? [];
    const at = Math.min(steps.length - 1, Math.max(0, number));
    if (at >= 0) this.set({ step: steps[at], playing: false }, "replace");
  }

  /** The index of the current checkpoint. */
  get at() {
    const steps = this.steps ?? [];
    return this.step === null ? steps.length - 1 : nearest(steps, this.step);
  }
}

/** The index of the value in a list that is nearest to `value`.
 *  @param {number[]} all
 *  @param {number} value */
export function nearest(all, value) {
  let best = 0;
  for (let n = 1; n < all.length; n++) if (Math.abs(all[n] - value) < Math.abs(all[best] - value)) best = n;
  return best;
}

/** Was the address written? */
function written(how, address) {
  try {
    history[how](null, "", address);
    return true;
  } catch {
    return false;
  }
}

function known(key) {
  if (!KEYS.has(key)) throw new Error(`the page has no state "${key}"`);
}

/** Is the second item off if the first is? */
function covers(its, { layer, head, destination }) {
  return its.layer === layer && its.head === head && (!its.destination || its.destination === destination);
}

function same(one, other) {
  return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
}
