// What is asked while somebody looks: a run's arrays once, an example and losses when one rests.
// Scrubbing asks for nothing. A newer question of one kind gives the older one up.

import { Contents, Maps, contentsOf } from "./maps.js";
import { asFlag } from "./url.js";

const REST = 140;
const SCRUB = 420;
const FEW = [64, 256, 1024];

export class Live {
  constructor(state, source) {
    Object.assign(this, { state, source, open: {}, timers: {} });
    state.watch("run seed", () => this.openRun());
    state.watch("about step ex tokens order off", (keys) => this.rest("example", keys, () => this.example()));
    state.watch("about losses step off", (keys) => this.rest("ablate", keys, () => this.ablate()));
    state.watch("off", () => state.set({ overTime: null }, "none"));
    state.watch("step", () => state.set({ costs: null }, "none"));
  }

  /** One question of a kind at a time; what goes wrong becomes a line, and the rest goes on. The line
   *  goes with the next answer of its kind, unless `run` says that it stays. */
  async ask(kind, run, quiet = false) {
    this.open[kind]?.abort();
    const stop = (this.open[kind] = new AbortController());
    try {
      const stays = await run(stop.signal);
      if (this.state.error?.kind === kind && !stays) this.state.set({ error: null }, "none");
    } catch (error) {
      if (error.name === "AbortError" || stop.signal.aborted) return;
      if (!quiet) this.state.set({ error: { text: error.message, kind } }, "none");
      if (kind === "run") this.state.set({ opening: false }, "none");
    } finally {
      if (this.open[kind] === stop) delete this.open[kind];
    }
  }

  /** Wait until nothing moved for a moment: longer while one scrubs. */
  rest(kind, keys, run) {
    const { about, steps, run: asked } = this.state;
    if (!about?.task || !steps.length) return;
    if (this.current !== asked || about.id !== asked) return; // of another run, or not all there
    clearTimeout(this.timers[kind]);
    delete this.timers[kind];
    this.open[kind]?.abort();
    if (kind === "ablate") this.state.set({ asking: this.state.off.length > 0, refused: "" }, "none");
    this.timers[kind] = setTimeout(
      () => {
        delete this.timers[kind];
        run();
      },
      keys.has("step") ? SCRUB : keys.has("about") ? 0 : REST,
    );
  }

  /** Is something asked, or about to be? */
  get busy() {
    const { waiting, words } = this.state;
    return waiting || words.size > 0 || [this.timers, this.open].some((its) => Object.keys(its).length > 0);
  }

  openRun() {
    const { state, source } = this;
    const id = state.run;
    for (const stop of Object.values(this.open)) stop.abort();
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
    this.timers = {};
    state.under = null;
    if (!id) return;
    state.set({ opening: true }, "none");
    return this.ask("run", async (signal) => {
      const options = { signal };
      const about = await source.run(id, { ...options, seed: state.seed });
      if (typeof about.task !== "object") about.task = null; // the name of a task that has no facts
      const steps = about.checkpoints ?? [];
      const seed = state.seed;
      const has = new Set(about.arrays ?? []);
      const gone = {
        example: null,
        answer: null,
        refused: "",
        costs: null,
        overTime: null,
        maps: null,
        losses: null,
        contents: null,
        fleet: null,
        findings: null,
        values: null,
        curves: null,
        spot: null,
        hover: null,
        pair: null,
      };
      // The same model, trained further: what is drawn stays until there is better.
      const again = this.shown === `${id} ${seed}`;
      if (!again) {
        state.undone = [];
        this.current = null;
      }
      this.shown = `${id} ${seed}`;
      const contents =
        about.circuit?.account && !has.has("contents")
          ? contentsOf(about.circuit.account, steps)
          : again
            ? state.contents
            : null;
      // A line of a kind goes with the next answer of that kind, and not because the model learned.
      const error = again && state.error?.kind ? state.error : null;
      state.set({ ...(again ? {} : gone), about, steps, contents, opening: false, error }, "none");
      const fetched = {
        losses: (its) => ({ losses: lossesOf(its) }),
        maps: (its) => ({ maps: new Maps(plain(its), its.about?.roles ?? about.task.roles) }),
        contents: (its) => ({
          contents: new Contents(plain(its), its.about?.roles ?? about.task.roles, steps),
        }),
        emergence: (its) => ({
          about: {
            ...about,
            emerged: Object.fromEntries(its.about.paths.map((path, n) => [path, its.about.emerged[n]])),
          },
        }),
        findings: (its) => ({ findings: its.about }),
        parameters: (its) => ({ values: plain(its), valuesAbout: its.about }),
      };
      const ask = (name) =>
        has.has(name) &&
        this.ask(
          name,
          async (own) => {
            const its = await source.arrays(id, name, seed, { signal: own });
            if (state.run === id) state.set(fetched[name](its), "none");
          },
          name === "contents",
        );
      // What is at hand first. All else is computed, by what the example waits for as well.
      const ready = new Set(about.at_hand ?? about.arrays);
      const drawn = ["losses", "parameters", "findings", "maps", "contents"];
      await Promise.all(drawn.filter((name) => ready.has(name)).map(ask));
      if (signal.aborted) return; // somebody has gone on to another run
      this.begin(id);
      if (!ready.has("maps")) await ask("maps");
      if (about.task) await this.first(signal);
      // The slowest last, as it is missed least.
      for (const name of [ready.has("contents") ? null : "contents", about.emerged ? null : "emergence"])
        if (name && !signal.aborted) await ask(name);
    });
  }

  /** From now on questions about the run may be asked. */
  begin(id) {
    if (this.current === id) return;
    this.current = id;
    this.rest("example", new Set(["about"]), () => this.example());
    this.rest("ablate", new Set(["about"]), () => this.ablate());
  }

  /** Wait for the first example, or for nobody who would need it. */
  async first(signal) {
    for (let n = 0; n < 100 && !this.state.example && !signal.aborted && !this.state.error; n++)
      await new Promise((done) => setTimeout(done, 50));
  }

  question(more = {}) {
    const { state } = this;
    const asked = { ...more };
    if (state.step !== null) asked.step = state.steps[state.at];
    if (state.seed !== null) asked.seed = state.seed;
    if (state.off.length) asked.changes = state.off.map(asFlag);
    return asked;
  }

  example() {
    const { state, source } = this;
    const { tokens } = state;
    const asked = this.exampleQuestion();
    return this.ask("example", async (signal) => {
      try {
        const { about, tensors } = await source.example(state.run, asked, { signal });
        const attention = tensors.get("changes.attention") ?? tensors.get("attention");
        state.set({ example: { json: about, attention, tokens } }, "none");
        return JSON.stringify(asked) === this.wentBack;
      } catch (error) {
        if (tokens && !signal.aborted && isRefusal(error)) this.goBack();
        throw error;
      }
    });
  }

  exampleQuestion() {
    const { ex: index, tokens, order } = this.state;
    return this.question({ index, ...(tokens ? { tokens } : {}), ...(order === null ? {} : { order }) });
  }

  /** What was typed is refused: the page, and its address, stay with what is shown. */
  goBack() {
    this.state.set({ tokens: this.state.example?.tokens ?? null }, "replace");
    this.wentBack = JSON.stringify(this.exampleQuestion());
  }

  /** Few examples at once, more when nobody asks for anything else. */
  ablate() {
    const { state, source } = this;
    const { at, seed } = state;
    if (!state.off.length && (!state.losses || state.losses.validationSteps.length)) {
      this.open.ablate?.abort();
      return state.set({ answer: null, asking: false }, "none");
    }
    return this.ask("ablate", async (signal) => {
      state.set({ asking: true }, "none");
      try {
        for (const examples of FEW) {
          const asked = this.question({ examples });
          const found = await source.ablate(state.run, asked, { signal });
          const answer = { ...found, at, seed, changes: asked.changes ?? [] };
          state.set({ answer, asking: examples !== FEW.at(-1) }, "none");
          await new Promise((done) => setTimeout(done, 60));
          if (signal.aborted) return;
        }
      } catch (error) {
        if (!signal.aborted) state.set({ answer: null, refused: error.message }, "none");
        throw error;
      } finally {
        if (!signal.aborted) state.set({ asking: false }, "none");
      }
    });
  }

  overTime() {
    this.stream("over-time", "overTime", () => this.question({ examples: 256 }));
  }

  costs() {
    this.stream("costs", "costs", () => this.question({ examples: 256 }));
  }

  /** Answers that come one after the other; asked for again: stop. */
  stream(kind, key, question) {
    const { state, source } = this;
    if (this.open[kind]) {
      this.open[kind].abort();
      return state.set({ working: "" }, "none");
    }
    this.ask(kind, async (signal) => {
      state.set({ working: kind, [key]: [] }, "none");
      const asked = question();
      if (kind === "over-time") delete asked.step;
      try {
        const rows = [];
        for await (const row of source[key](state.run, asked, { signal })) {
          rows.push(row);
          state.set({ [key]: [...rows] }, "none");
        }
      } finally {
        if (state.working === kind) state.set({ working: "" }, "none");
      }
    });
  }
}

/** A question that cannot be answered, and not a server that cannot answer now. */
function isRefusal({ status = 400 }) {
  return status >= 400 && status < 429;
}

/** Tensors by name. */
function plain({ tensors }) {
  return Object.fromEntries(tensors);
}

/** Losses [point, seed, hop] at steps; rows that were not measured hold no number. */
function lossesOf(its) {
  const found = plain(its);
  const list = (name) => [...(found[name]?.data ?? [])];
  const value =
    ({ shape: [, seeds, hops], data }) =>
    (at, member, hop) =>
      data[(at * seeds + Math.min(member, seeds - 1)) * hops + hop];
  const steps = list("steps");
  const none = { shape: [0, 1, 1], data: [] };
  const [train, validation] = [found.train ?? none, found.validation ?? none];
  return {
    trainSteps: found.train_steps ? list("train_steps") : steps,
    validationSteps: found.validation_steps ? list("validation_steps") : steps,
    train: value(train),
    validation: value(validation),
  };
}
