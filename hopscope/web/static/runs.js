// All runs, at the left: what comes with hopscope first, then the store, newest first.

import { fill, h } from "./dom.js";
import { counted, number } from "./words.js";

const POLL = 1500;
const SHOWN = 60;

export function runsPane(state, source) {
  const search = h("input", {
    type: "search",
    placeholder: "Filter runs",
    "aria-label": "Filter runs",
    on: { input: () => show() },
  });
  const count = h("p", { class: "count" });
  const list = h("ul", {});
  const more = h("button", { type: "button", class: "plain", hidden: true }, "show all");
  const element = h(
    "nav",
    { class: "runs", id: "runs", "aria-label": "Runs" },
    h("div", { class: "filter" }, search),
    count,
    list,
    more,
  );
  const rows = new Map();
  let cursor = "";
  let all = false;
  more.addEventListener("click", () => {
    all = true;
    show();
  });
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...rows.values()]
      .filter((row) => words.every((word) => row.text.includes(word)))
      .sort(
        (a, b) =>
          rank(a) - rank(b) ||
          String(b.created ?? b.date ?? "").localeCompare(String(a.created ?? a.date ?? "")),
      );
    const seen = all ? found : found.slice(0, SHOWN);
    count.textContent = `${found.length} of ${counted(rows.size, "run")}`;
    more.hidden = seen.length === found.length;
    fill(
      list,
      seen.map((row) => line(row, state)),
    );
  };
  const ask = async () => {
    if (document.hidden && cursor) return; // the first answer is what the page opens with
    const { rows: changed, cursor: now, gone = [], more: others = false } = await source.runs(cursor);
    cursor = now;
    for (const id of gone) rows.delete(id);
    for (const row of changed) {
      rows.set(row.id, {
        ...row,
        text: [row.name, row.kind, row.task, row.state, ...(row.tags ?? [])].join(" ").toLowerCase(),
      });
    }
    if (changed.length + gone.length) show();
    const here = changed.find((row) => row.id === state.run);
    // Where opening it failed, too: whoever lists it now may answer.
    if (here && (state.about || !state.opening)) state.set({ stale: here }, "none");
    state.set({ listed: rows.size }, "none");
    if (!rows.size) fill(list, h("li", { class: "quiet" }, "No run yet: `hopscope train demo` makes one."));
    return others;
  };
  state.watch("run about", show);
  return {
    element,
    search,
    rows,
    async start() {
      const again = async () => {
        let others = false;
        try {
          others = await ask();
          if (state.error?.kind === "runs") state.set({ error: null }, "none");
        } catch (error) {
          state.set({ error: { text: error.message, kind: "runs" } }, "none");
        }
        setTimeout(again, source.live ? (others ? 0 : POLL) : 1e9);
      };
      await again();
    },
  };
}

const GALLERY = "gallery/";
const FIRST = ["demo", "planted", "transformer-a", "ngram"];

/** Where a run stands: the gallery's in this order, then what else is in the gallery, then all others. */
function rank({ name }) {
  if (!name.startsWith(GALLERY)) return FIRST.length + 1;
  const at = FIRST.indexOf(name.slice(GALLERY.length));
  return at < 0 ? FIRST.length : at;
}

function line(row, state) {
  const here = row.id === state.run;
  const bad = row.problem || row.state === "damaged";
  const told = [
    row.task ?? row.kind,
    row.state,
    row.loss === undefined || row.loss === null ? null : `loss ${number(row.loss)}`,
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
        "aria-current": here ? "page" : null,
      },
      h("i", { class: "state", "aria-hidden": "true" }),
      h("b", {}, row.name),
      h("small", {}, row.problem || told.join(" · ")),
    ),
  );
}
