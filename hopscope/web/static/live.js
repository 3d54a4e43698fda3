// @ts-check
// Sends the page's requests: a run's arrays once, an example and losses when nothing has changed for
// a moment (so not while the user scrubs). A newer request of one kind aborts the older one.

import { asFlag } from "./changes.js";
import { FETCHED } from "./fetched.js";
import { cutOf, squaresOf } from "./maps.js";
import { isRefusal } from "./source.js";
import { OF_MODEL } from "./state.js";

const [CLICK, REST, SCRUB] = [20, 140, 420];
/** The number of examples of a stream's answers. */
export const EXAMPLES = 256;
const STREAMS = ["overTime", "costs"]; // methods of the source, and the state's keys of their answers
const STAYING = [...STREAMS, "fleet"]; // continue if the model is trained further

export class Live {
  constructor(state, source) {
    this.state = state;
    this.source = source;
    /** @type {Record<string, AbortController>} Open requests, by kind. */
    this.open = {};
    /** @type {Record<string, number>} Timers of requests that wait, by kind. */
    this.timers = {};
    /** @type {Record<string, string>} The last question of each stream. */
    this.streamed = {};
    this.missed = false; // was the run trained further while its maps were measured?
    this.shown = ""; // the run and seed that are drawn
    /** @type {string | null} The run for which requests are allowed. */
    this.current = null;
    this.wentBack = ""; // the question that was restored after a refused one
    state.set({ alive: source.live }, "none");
    state.watch("run seed", () => this.openRun());
    state.watch("about step ex tokens order off", (keys) => this.rest("example", keys, () => this.example()));
    state.watch("about losses step off", (keys) => this.rest("ablate", keys, () => this.ablate()));
    state.watch("about ex asked", () => state.about?.lm && this.benchmark());
    state.watch("step off", () => this.dropStreams());
    // Back on a page that the browser kept: what was asked when it was left is asked again.
    addEventListener("pageshow", ({ persisted }) => persisted && this.openRun());
  }

  /** Run one request of a kind at a time; an error becomes a line on the page. The next answer of
   *  the same kind removes the line, unless `run` returns true. */
  async ask(kind, run) {
    this.open[kind]?.abort();
    const stop = (this.open[kind] = new AbortController());
    this.sayWorking();
    try {
      const stays = await run(stop.signal);
      if (!stays && !stop.signal.aborted) this.state.mend(kind);
    } catch (error) {
      if (error.name === "AbortError" || stop.signal.aborted) return;
      this.state.fail(kind, error.message);
      if (kind === "run") this.close();
    } finally {
      if (this.open[kind] === stop) delete this.open[kind];
      this.sayWorking();
    }
  }

  /** Write the names of the open streams into the state. */
  sayWorking() {
    const working = STREAMS.filter((kind) => this.open[kind]);
    this.state.set({ working: working.join(" ") }, "none");
  }

  /** Run a request when nothing has changed for a moment (longer while the user scrubs). */
  rest(kind, keys, run) {
    const { about, steps, run: asked } = this.state;
    if (!about?.task || !steps.length) return;
    if (this.current !== asked || about.id !== asked) return; // another run, or not opened yet
    clearTimeout(this.timers[kind]);
    delete this.timers[kind];
    this.open[kind]?.abort();
    if (kind === "ablate") this.state.set({ asking: this.state.off.length > 0, refused: "" }, "none");
    this.timers[kind] = setTimeout(
      () => {
        delete this.timers[kind];
        run();
      },
      keys.has("step") ? SCRUB : keys.has("about") ? 0 : keys.has("off") ? CLICK : REST,
    );
  }

  /** Numbers of examples on which losses are measured, one after the other. */
  get counts() {
    return this.state.about.counts ?? this.source.counts;
  }

  /** Requests that are open or wait, by kind; and a frame, or rest, that the page waits for. */
  get pending() {
    const { waiting, rests } = this.state;
    const requests = [...Object.keys(this.open), ...Object.keys(this.timers)];
    return [...requests, ...(waiting ? ["frame"] : []), ...(rests > 0 ? ["rest"] : [])];
  }

  openRun() {
    const { state, source } = this;
    const { run: id, seed } = state;
    const again = this.shown === `${id} ${seed}`; // the same model, trained further
    const measuring = this.open.maps && !this.open.maps.signal.aborted;
    // Maps aborted at each new checkpoint would never arrive: finish them first, then open the run
    // again.
    this.missed = Boolean(again && measuring);
    if (this.missed) return;
    for (const [kind, stop] of Object.entries(this.open)) if (!again || !STAYING.includes(kind)) stop.abort();
    this.forget();
    if (!id) return;
    state.set({ opening: true }, "none");
    return this.ask("run", async (signal) => {
      const about = await this.described(id, seed, signal);
      if (!about) return; // opened again without the seed
      if (typeof about.task !== "object") about.task = null; // only a name: a task without facts
      const steps = about.checkpoints ?? [];
      const has = new Set(about.arrays);
      const ask = (name, take = (its) => state.set(its, "none")) =>
        has.has(name) &&
        this.ask(name, async (own) => {
          const its = await source.arrays(id, name, seed, { signal: own });
          if (state.run === id) take(FETCHED[name](its, about));
        });
      // The drawing stays until the maps of the new steps are there.
      const ahead = {};
      if (again && state.maps) await ask("maps", (its) => Object.assign(ahead, its));
      if (signal.aborted) return;
      if (!again) {
        state.undone = [];
        this.current = null;
      }
      this.shown = `${id} ${seed}`;
      const gone = again ? ahead : OF_MODEL;
      // An error line is removed by the next answer of its kind, not by further training.
      const error = again && state.error?.kind ? state.error : null;
      state.set({ ...gone, about, steps, opening: false, error }, "none");
      state.fit(about);
      // First the stored arrays. The others are computed by the thread that the example waits for.
      const ready = new Set(about.at_hand);
      const drawn = [...ready].filter((name) => FETCHED[name] && !ahead[name] && name !== "emergence");
      await Promise.all(drawn.map((name) => ask(name)));
      if (signal.aborted) return; // the user has opened another run
      this.begin(id);
      for (const name of ["parameters", "findings", "maps"])
        if (!ready.has(name) && !ahead[name]) await ask(name);
      if (this.missed && !signal.aborted) return this.openRun();
      await this.first(signal);
      // The slowest and least important last.
      if (has.has("contents") && !ready.has("contents") && !signal.aborted) await this.squares(about);
      if (!about.emerged && !signal.aborted) await ask("emergence");
    });
  }

  /** Fetch the probes (squares) of one checkpoint after the other, each time of the one nearest to
   *  the shown checkpoint. So a click never waits for more than one. */
  squares(about) {
    const { state, source } = this;
    const far = (at) => Math.abs(at - state.at);
    const measured = async (signal) => {
      for (;;) {
        const missing = [...state.steps.keys()].filter((at) => !state.contents?.has(at));
        if (!missing.length) return;
        const step = state.steps[missing.reduce((a, b) => (far(b) < far(a) ? b : a))];
        const its = await source.arrays(about.id, "contents", state.seed, { step, signal });
        const { contents } = FETCHED.contents(its, about);
        state.set({ contents: contents.with(state.contents) }, "none");
        const measuring = this.open.ablate ?? this.timers.ablate;
        const asked = measuring || state.cut?.of === state.which;
        if (!asked && state.fits && this.lacksCut) this.ask("ablate", (own) => this.readCut(own));
      }
    };
    const told = ({ name, message }) => name !== "AbortError" && state.set({ unmeasured: message }, "none");
    return this.ask("contents", (signal) => measured(signal).catch(told));
  }

  /** Forget requests that wait for a moment of rest. */
  forget() {
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
    this.timers = {};
  }

  /** Show no run if the one in the address cannot be opened; if it is already shown, it stays. */
  close() {
    const { state } = this;
    state.set({ opening: false, asking: false }, "none");
    if (this.shown === `${state.run} ${state.seed}`) return;
    this.forget();
    this.shown = "";
    this.current = null;
    state.undone = [];
    state.set({ ...OF_MODEL, about: null, steps: null, playing: false }, "none");
  }

  /** The description of a run; null if the run lacks this seed, which is then removed from the
   *  state. */
  async described(id, seed, signal) {
    const { state, source } = this;
    try {
      return await source.run(id, { signal, seed });
    } catch (error) {
      if (seed === null || signal.aborted || !isRefusal(error)) throw error;
      await source.run(id, { signal });
      state.dropped.push(`seed=${seed}`);
      state.set({ seed: null }, "none");
      return null;
    }
  }

  /** Allow requests about the run, and send the first ones, unless the next frame sends them. */
  begin(id) {
    if (this.current === id) return;
    this.current = id;
    if (this.state.changed.has("about")) return;
    this.rest("example", new Set(["about"]), () => this.example());
    this.rest("ablate", new Set(["about"]), () => this.ablate());
  }

  /** Wait for the first example, at most 5 s, or until it is not needed. */
  async first(signal) {
    const { state } = this;
    const waits = () => state.about?.task && state.steps.length && !state.example && !state.error;
    for (let n = 0; n < 100 && waits() && !signal.aborted; n++)
      await new Promise((done) => setTimeout(done, 50));
  }

  question(more = {}) {
    const { state } = this;
    const asked = { ...more };
    if (state.steps.length) asked.step = state.steps[state.at]; // explicit: training adds steps
    if (state.seed !== null) asked.seed = state.seed;
    if (state.off.length) asked.changes = state.off.map(asFlag);
    return asked;
  }

  example() {
    const { state, source } = this;
    const { tokens } = state;
    const asked = this.exampleQuestion();
    state.set({ unanswered: "" }, "none");
    return this.ask("example", async (signal) => {
      try {
        const { about, tensors } = await source.example(state.run, asked, { signal });
        const attention = tensors.get("changes.attention") ?? tensors.get("attention");
        state.set({ example: { json: about, attention, tokens }, unanswered: "" }, "none");
        return JSON.stringify(asked) === this.wentBack;
      } catch (error) {
        if (tokens && isRefusal(error) && !signal.aborted) this.goBack();
        else if (!signal.aborted) state.set({ example: null, unanswered: error.message }, "none");
        throw error;
      }
    });
  }

  exampleQuestion() {
    const { ex: index, tokens, order } = this.state;
    return this.question({ index, ...(tokens ? { tokens } : {}), ...(order === null ? {} : { order }) });
  }

  /** A question of a benchmark, with the model's answer to it. */
  benchmark() {
    const { state, source } = this;
    const { id, lm } = state.about;
    const kind = lm.kinds.includes(state.asked) ? state.asked : lm.kinds[0];
    return this.ask("question", async (signal) => {
      const found = await source.example(id, { index: state.ex, kind }, { signal });
      state.set({ question: found.about }, "none");
    });
  }

  /** After a refused typed example, restore the page and its address to the shown one. */
  goBack() {
    this.state.set({ tokens: this.state.example?.tokens ?? null }, "replace");
    this.wentBack = JSON.stringify(this.exampleQuestion());
  }

  /** Measure losses on few examples first, then on more if there is no newer request. */
  ablate() {
    const { state, source } = this;
    const noted = state.losses ? state.losses.validationSteps.length : state.about.arrays.includes("losses");
    if (!state.off.length && noted) {
      this.open.ablate?.abort();
      state.mend("ablate");
      return state.set({ answer: null, asking: false }, "none");
    }
    return this.ask("ablate", async (signal) => {
      state.set({ asking: true }, "none");
      try {
        const { fits, answer: measured } = state;
        for (const examples of this.counts.filter((its) => !fits || its > measured.examples)) {
          const { at, which } = state;
          const asked = this.question({ examples });
          const found = await source.ablate(state.run, asked, { signal });
          const answer = { ...found, of: which, at, changes: asked.changes ?? [] };
          state.set({ answer, asking: examples !== this.counts.at(-1) }, "none");
          await new Promise((done) => setTimeout(done, 60));
          if (signal.aborted) return;
        }
      } catch (error) {
        if (!signal.aborted) state.set({ answer: null, refused: error.message }, "none");
        throw error;
      } finally {
        if (!signal.aborted) state.set({ asking: false }, "none");
      }
      if (this.lacksCut) await this.readCut(signal);
    });
  }

  /** Do the squares still belong to the unchanged model? */
  get lacksCut() {
    const { state, source } = this;
    return squaresOf(state).old && state.contents && source.live;
  }

  /** Fetch the squares (probes) of the changed model; without them the squares are pale. */
  async readCut(signal) {
    const { state, source } = this;
    const asked = this.question({ examples: this.counts.at(-1), probe: true });
    const { at, which } = state;
    const found = { of: which, contents: null, why: "" };
    try {
      const { decodable } = await source.ablate(state.run, asked, { signal });
      found.contents = cutOf(decodable, state.steps, at);
    } catch (error) {
      found.why = error.message;
    }
    if (!signal.aborted) state.set({ cut: found }, "none");
  }

  /** Start a stream of answers; if it is already open, stop it. */
  stream(kind) {
    const { state, source } = this;
    if (this.open[kind]) return this.stop(kind);
    const asked = this.streamQuestion(kind);
    this.streamed[kind] = JSON.stringify(asked);
    state.set({ [kind]: [] }, "none");
    return this.ask(kind, async (signal) => {
      const rows = [];
      for await (const row of source[kind](state.run, asked, { signal })) {
        if (signal.aborted) return;
        rows.push(row);
        state.set({ [kind]: [...rows] }, "none");
      }
    });
  }

  streamQuestion(kind) {
    const { step, ...asked } = this.question({ examples: EXAMPLES });
    return kind === "overTime" ? asked : { ...asked, step };
  }

  stop(kind) {
    this.open[kind]?.abort();
    delete this.open[kind];
    this.sayWorking();
  }

  /** Stop the streams of other steps or switches, and drop their answers. */
  dropStreams() {
    for (const kind of STREAMS) {
      const asked = this.streamed[kind];
      if (asked === undefined || asked === JSON.stringify(this.streamQuestion(kind))) continue;
      this.stop(kind);
      this.state.mend(kind);
      this.state.set({ [kind]: null }, "none");
    }
  }
}
