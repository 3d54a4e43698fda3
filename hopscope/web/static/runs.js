// The list of runs at the left: sorted, in groups, each with a curve of its losses if it has any.

import { lossesOf } from "./fetched.js";
import { button, fill, h, s, select } from "./dom.js";
import { isRefusal } from "./source.js";
import { counted, number } from "./words.js";

const POLL = 1500;
const SHOWN = 60;
const TRAINED = ["facts", "ngram"]; // kinds that have losses
const [WIDE, HIGH] = [34, 14];
const HASH = /-[0-9a-f]{10}$/; // the hash at the end of a run's name

export function runsPane(state, source) {
  const search = h("input", {
    type: "search",
    placeholder: "Filter runs",
    "aria-label": "Filter runs",
    on: { input: () => show() },
  });
  const sort = select("Sort runs", Object.keys(ORDERS), "newest", () => show());
  const group = select("Group runs", Object.keys(GROUPS), "by place", () => show());
  const count = h("p", { class: "count" });
  const list = h("div", {});
  const more = button("show all", () => show((all = true)), { class: "plain" });
  const element = h(
    "nav",
    { class: "runs", id: "runs", "aria-label": "Runs" },
    h("div", { class: "filter" }, search, sort, group),
    count,
    list,
    more,
  );
  const rows = new Map();
  let cursor = "";
  let all = false;
  let seen = [];
  let learning = false; // are losses being fetched?
  const show = () => {
    const words = search.value.toLowerCase().match(/seed \d+|\S+/g) ?? [];
    const found = [...rows.values()]
      .filter((row) => words.every((word) => has(row, word)))
      .sort(ORDERS[sort.value]);
    seen = all ? found : found.slice(0, SHOWN);
    count.textContent = `${found.length} of ${counted(rows.size, "run")}`;
    more.hidden = seen.length === found.length;
    const groups = Object.entries(Object.groupBy(seen, GROUPS[group.value]));
    fill(
      list,
      groups.map(([name, its]) => [
        name ? h("h2", {}, name) : null,
        h("ul", {}, its.map((row) => line(row, state))),
      ]),
      rows.size ? null : h("p", { class: "quiet" }, "No run yet: `hopscope train demo` makes one."),
    );
    learn();
  };
  /** Fetch the losses of the listed runs, one after the other, once a run is open, or cannot be
   *  opened. If the server cannot answer now, ask again later. */
  const learn = async () => {
    if (learning || !source.live || !(state.about || state.error) || !element.checkVisibility()) return;
    const missing = (row) => !row.curve && TRAINED.includes(row.kind) && row.step && !row.problem;
    const wanted = seen.filter(missing);
    if (!wanted.length) return;
    learning = true;
    const none = (error) => (isRefusal(error) ? curveOf(null) : null);
    for (const row of wanted) {
      row.curve = await source.arrays(row.id, "losses").then(curveOf, none);
      if (!row.curve) break;
    }
    learning = false;
    if (wanted.every(({ curve }) => curve)) show();
    else setTimeout(show, POLL);
  };
  const ask = async () => {
    if (document.hidden && cursor) return; // but always fetch the first list
    const { rows: changed, cursor: now, gone = [], more: others = false, problems } = await source.runs(cursor);
    const first = !cursor;
    cursor = now;
    if (problems?.length) state.fail("store", problems.join("; "));
    else if (problems) state.mend("store");
    for (const id of gone) {
      rows.delete(id);
      if (id === state.about?.id) state.fail("run", "this run was removed; what is shown was read before");
    }
    for (const row of changed) {
      const words = [row.name, row.kind, row.task, row.state, ...seedsOf(row), ...(row.tags ?? [])];
      const text = words.join(" ").toLowerCase();
      rows.set(row.id, { ...row, text });
    }
    if (first || changed.length + gone.length) show();
    const here = changed.find((row) => row.id === state.run);
    if (here && isStale(here, state)) state.set({ stale: here }, "none");
    state.set({ listed: rows.size }, "none");
    return others;
  };
  state.watch("run about error", show);
  return {
    element,
    search,
    rows,
    learn,
    busy: () => learning,
    async start() {
      let silent = false; // the server did not answer; then a run may have failed to open, too
      const again = async () => {
        let others = false;
        try {
          others = await ask();
          if (silent && state.run && !state.about && !state.opening) state.set({ stale: {} }, "none");
          silent = false;
          state.mend("runs");
        } catch (error) {
          silent = true;
          if (error.name !== "AbortError") state.fail("runs", error.message);
        }
        if (source.live) setTimeout(again, others ? 0 : POLL);
      };
      await again();
    },
  };
}

/** Does the run have to be opened again: was it trained further since, or has opening it failed? (The
 *  server may answer now.) */
function isStale(row, { about, opening }) {
  if (about?.id !== row.id) return !opening;
  return ["revision", "state"].some((name) => about[name] !== row[name]);
}

/** The losses of a run's first model (the mean over hops) as a path to draw, and the last loss. The
 *  validation losses are used if there are any. */
function curveOf(found) {
  if (!found) return { path: "", last: null };
  const { train, trainSteps, validation, validationSteps, hops } = lossesOf(found);
  const mean = (of, at) => Array.from({ length: hops }, (_, hop) => of(at, 0, hop) / hops).reduce((a, b) => a + b);
  const all = [
    [validation, validationSteps],
    [train, trainSteps],
  ].map(([of, steps]) => steps.map((step, at) => [step, mean(of, at)]).filter(([, loss]) => Number.isFinite(loss)));
  const [points] = all.filter((its) => its.length);
  if (!points) return { path: "", last: null };
  const drawn = all[1].length > 1 ? all[1] : points;
  const by = Math.ceil(drawn.length / WIDE);
  const end = drawn.at(-1)[0] || 1;
  const top = Math.max(...drawn.map(([, loss]) => loss), 1e-9);
  const place = ([step, loss]) => `${((WIDE * step) / end).toFixed(1)} ${(1 + (HIGH - 2) * (1 - loss / top)).toFixed(1)}`;
  return { path: `M${drawn.filter((_, n) => n % by === 0).map(place).join("L")}`, last: points.at(-1)[1] };
}

const GALLERY = "gallery/";
const FIRST = ["demo", "planted", "transformer-a", "ngram"];

/** The rank of a run in the list: models in FIRST, other models of the gallery, all other runs. */
function rank({ name }) {
  if (!name.startsWith(GALLERY)) return FIRST.length + 1;
  const at = FIRST.indexOf(name.slice(GALLERY.length));
  return at < 0 ? FIRST.length : at;
}

const ORDERS = {
  newest: (a, b) => rank(a) - rank(b) || String(b.date ?? "").localeCompare(String(a.date ?? "")),
  name: (a, b) => a.name.localeCompare(b.name),
  loss: (a, b) => (a.curve?.last ?? Infinity) - (b.curve?.last ?? Infinity),
};
const GROUPS = {
  "by place": ({ name }) => (name.startsWith(GALLERY) ? "Gallery" : "Mine"),
  "by kind": ({ task, kind }) => task ?? kind ?? "damaged",
  ungrouped: () => "",
};

const seedsOf = ({ seeds = [] }) =>
  seeds.length > 2 ? [counted(seeds.length, "seed")] : seeds.map((seed) => `seed ${seed}`);

/** Does the row contain this word, or have the seed of a word such as "seed 1"? */
function has({ text, seeds = [] }, word) {
  return word.startsWith("seed ") ? seeds.includes(Number(word.slice(5))) : text.includes(word);
}

function line(row, state) {
  const name = row.name.replace(GALLERY, "");
  const bad = row.problem || row.state === "damaged";
  const { path = "", last = null } = row.curve ?? {};
  const hash = HASH.exec(name)?.[0] ?? "";
  const told = [
    row.state === "complete" ? null : row.state,
    last === null ? null : `loss ${number(last)}${row.seeds?.length > 1 ? ` of seed ${row.seeds[0]}` : ""}`,
    ...(name === row.name ? seedsOf(row) : []),
    row.task ?? row.kind,
    row.hops ? counted(row.hops, "hop") : null,
    ...(row.tags ?? []),
  ].filter(Boolean);
  return h(
    "li",
    {},
    h(
      "a",
      {
        href: `#/run/${encodeURIComponent(row.id)}`,
        data: { key: row.id },
        class: `run ${bad ? "bad" : (row.state ?? "")}`,
        title: row.problem || row.name,
        "aria-current": row.id === state.run ? "page" : null,
      },
      h("i", { class: "state", "aria-hidden": "true" }),
      h("b", {}, h("span", {}, name.slice(0, name.length - hash.length)), h("span", {}, hash)),
      path
        ? s("svg", { class: "spark", width: WIDE, height: HIGH, "aria-hidden": "true" }, s("path", { d: path }))
        : null,
      h("small", {}, row.problem || told.join(" · ")),
    ),
  );
}
