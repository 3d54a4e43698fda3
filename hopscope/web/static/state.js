// @ts-check
// One object that everything looks at: what the address says (view) and what was fetched (data).
// Whoever draws something names the keys that it depends on, and is called when one changes.

import { gives } from "./source.js";
import { OF_HEADS, START, asFlag, fitted, format, parse } from "./url.js";

const VIEW = Object.keys(START);
const REST = 120;

/**
 * One thing that is switched off: a head, or (with a destination) one row of it.
 * @typedef {{layer: number, head: number, destination: string, as: string}} Change
 * @typedef {{layer?: number, head?: number, destination?: string, source?: string, hop?: number, chain?: number}} Point
 */

/** All that the address does not say: what was fetched, what is on its way, what is pointed at. */
const DATA = {
  /** What is known of the run, as hopscope/web/views.py tells it. @type {any} */
  about: null,
  /** Its checkpoints. @type {number[] | null} */
  steps: null,
  // Arrays of the run (fetched.js); null until they are there.
  ...{ losses: null, maps: null, contents: null, fleet: null, findings: null, values: null, curves: null },
  // Answers: to the example (of a benchmark: question), to what is switched off (its losses; its
  // squares), and streams.
  ...{ example: null, question: null, answer: null, cut: null, overTime: null, costs: null },
  // What goes on: is a run opened, are losses asked, which streams come, does the slider play?
  ...{ opening: false, asking: false, working: "", playing: false },
  // Why losses, and squares, cannot be measured.
  ...{ refused: "", unmeasured: "" },
  /** The line about what went wrong. @type {{text: string, kind?: string} | null} */
  error: null,
  // The list of runs: how many, and the one that changed.
  ...{ listed: 0, stale: null },
  reading: null, // which path of the fleet was chosen
  /** What is pointed at. @type {Point | null} */
  point: null,
  // A cell of the map, a token, a pair of tokens.
  ...{ spot: null, hover: null, pair: null },
  // Does a server answer; what is drawn anew when the theme is another.
  ...{ alive: true, theme: "" },
};
const KEYS = new Set([...VIEW, ...Object.keys(DATA)]);

export class State {
  constructor() {
    /** @type {string[]} Of the address, and not yet told. */
    this.dropped = [];
    Object.assign(this, DATA, parse(location.hash, this.dropped));
    /** @type {{keys: string[], run: (keys: Set<string>) => void}[]} */
    this.watchers = [];
    this.changed = new Set();
    /** @type {Change[][]} */
    this.undone = [];
    this.later = 0;
    this.waiting = false;
    this.words = new Set();
    this.rests = 0;
    /** @type {Point | null} What the key for switching off means. */
    this.under = null;
    this.near = ""; // the pane that was pointed at last
    this.letters = true; // are keys of one letter taken?
    Object.seal(this);
    addEventListener("popstate", () => this.goTo(location.hash));
    addEventListener("hashchange", () => this.goTo(location.hash));
  }

  /** What somebody typed, pasted or went back to. An address with a token, or a word for one, is of
   *  a server that has not been asked yet: the page begins anew with it. */
  goTo(address) {
    if (gives(address)) return location.reload();
    this.dropped = [];
    this.mend("address");
    const found = parse(address, this.dropped);
    const stays = this.about?.id === found.run && this.seed === found.seed; // else it is opened first
    if (!same(this.off, found.off)) this.undone = []; // the history has taken back what it held
    this.set(found, "none");
    if (stays) this.fit(this.about);
  }

  /** Keep of what the address said only what this run has, and tell what was dropped. */
  fit(about) {
    const { patch, dropped } = fitted(this, about);
    const all = [...this.dropped, ...dropped];
    this.dropped = [];
    if (!all.length) return;
    const told = all.join(", ").slice(0, 120);
    const text = `A part of the address was left out, since this run has nothing of that name: ${told}`;
    this.set(patch, "none");
    this.fail("address", text);
    this.remember("replace");
  }

  /** Say in a line what went wrong, until something of this kind goes well (`mend`). */
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

  /** Change some keys. `how`: a new entry of the history (push), the same one (replace), none. */
  set(patch, how = "push") {
    if (how !== "none" && this.leaving) return;
    if (how === "push") {
      this.remembered(); // what waits is of the entry that is left now
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
  }

  /** What goes wrong becomes a line, and the rest goes on. */
  draw(run) {
    try {
      run();
    } catch (error) {
      console.error(error);
      this.fail("", `a part of this page could not be drawn: ${error.message}`);
    }
  }

  /** Write words that nobody reads while things move (commands, labels for those who only hear them)
   *  when nothing has moved for a moment, and nothing waits to be drawn: words are of what is drawn. */
  atRest(write) {
    this.words.add(write);
    clearTimeout(this.rests);
    this.rests = setTimeout(() => this.writeWords(), REST);
  }

  writeWords() {
    if (this.waiting) {
      this.rests = setTimeout(() => this.writeWords(), REST);
      return;
    }
    const written = this.words;
    this.words = new Set();
    for (const each of written) this.draw(each);
  }

  /** Browsers refuse more than some hundred entries a minute: scrubbing replaces, and only rests; so does
   *  what they refuse (WebKit, the 101st in ten seconds). */
  remember(how) {
    if (location.protocol === "about:") return; // written into a frame: it has no address
    const address = format(this);
    if (address === location.hash) return;
    clearTimeout(this.later);
    this.later = how === "push" && written("pushState", address) ? 0 : this.soon();
  }

  soon() {
    return setTimeout(() => this.remembered(), 150);
  }

  /** Write now what waits to be written. */
  remembered() {
    if (!this.later) return;
    clearTimeout(this.later);
    this.later = written("replaceState", format(this)) ? 0 : this.soon();
  }

  /** Switch something off, or on again if it is off in any way: a row with its whole head. Nothing is
   *  said of a head twice: switched off as a whole, it takes the place of its rows. */
  toggle({ layer, head, destination = "" }) {
    if (this.isOff(layer, head, destination))
      return this.change(this.off.filter((its) => !covers(its, { layer, head, destination })));
    const as = destination && OF_HEADS.includes(this.as) ? "uniform" : this.as;
    const others = this.off.filter((its) => destination || its.layer !== layer || its.head !== head);
    this.change([...others, { layer, head, destination, as }]);
  }

  /** Make this the list of what is off; the earlier one can be had back. */
  change(list) {
    const off = list.map(({ layer, head, destination = "", as }) => ({ layer, head, destination, as })); // as parsed
    const before = this.off;
    this.set({ off });
    if (this.off !== before) this.undone.push(before);
  }

  undo() {
    if (this.undone.length) this.set({ off: this.undone.pop() });
  }

  /** The pointer or the focus is on this: a head, or one of its arrows. */
  enter(item) {
    this.under = item;
    this.set({ point: item }, "none");
  }

  /** It is no longer there. */
  leave(item) {
    if (this.under === item) this.under = null;
    if (this.point === item) this.set({ point: null }, "none");
  }

  /** Is this row of a head (or with no destination: the whole head) switched off? */
  isOff(layer, head, destination = "") {
    return this.off.some((its) => covers(its, { layer, head, destination }));
  }

  /** Is the answer that is there of the checkpoint, the seed and the switches that are looked at? */
  get fits() {
    const { answer, at, seed, off } = this;
    return answer?.at === at && answer.seed === seed && same(answer.changes, off.map(asFlag));
  }

  /** Is a run shown that was left for one that is not there yet? Then nothing is changed: a change
   *  would go into the address of the new run. */
  get leaving() {
    return Boolean(this.about && this.run) && this.about.id !== this.run;
  }

  /** Look at the checkpoint of this number, or the nearest that there is. */
  moveTo(number) {
    const steps = this.steps ?? [];
    const at = Math.min(steps.length - 1, Math.max(0, number));
    if (at >= 0) this.set({ step: steps[at], playing: false }, "replace");
  }

  /** The number of the checkpoint that is looked at. */
  get at() {
    const steps = this.steps ?? [];
    if (this.step === null) return steps.length - 1;
    let best = 0;
    steps.forEach((step, n) => {
      if (Math.abs(step - this.step) < Math.abs(steps[best] - this.step)) best = n;
    });
    return best;
  }
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

/** Is the second off if the first is? */
function covers(its, { layer, head, destination }) {
  return its.layer === layer && its.head === head && (!its.destination || its.destination === destination);
}

function same(one, other) {
  return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
}
