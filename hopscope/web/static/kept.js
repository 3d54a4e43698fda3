// Views that the user keeps with a run: the button that keeps one, and the list to choose from.

import { able, announce, button, fill, h, select } from "./dom.js";

const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$/; // as in hopscope/web/views.py

const REMOVE = "remove: "; // names of views have no colon

export function keptViews(state, source) {
  const list = h("span", {});
  let asked = 0;
  const remove = (run, name) => change(state, () => source.forget(run, name), `${name} is removed`, shown);
  const shown = async () => {
    const run = state.about?.id;
    const its = ++asked;
    const found = run ? await source.views(run).catch(() => ({})) : {};
    if (its !== asked) return; // a later request is newer
    const names = Object.keys(found);
    const go = (name) => {
      made.value = ""; // so that the same view can be chosen again
      if (name.startsWith(REMOVE)) return remove(run, name.slice(REMOVE.length));
      const { address } = found[name] ?? {};
      if (typeof address === "string" && address.startsWith("#/")) location.hash = address;
    };
    const away = source.live ? names.map((name) => REMOVE + name) : [];
    const made = select("Kept views", [["", "views …"], ...names, ...away], "", go);
    fill(list, names.length ? made : null);
  };
  const keep = button("keep view", () => ask(state, source, shown), { class: "plain" });
  state.watch("about opening", () => {
    const { about } = state;
    const never = !about || about.named || about.name.startsWith("gallery/");
    able(keep, !never);
    keep.title = never
      ? "Views are kept beside runs of your own; here, copy the address"
      : "Keep this view beside the run";
    shown();
  });
  return { list, keep };
}

/** Ask the user for a name, and keep the view under it. */
function ask(state, source, shown) {
  const today = new Date().toISOString().slice(0, 10);
  const name = prompt("Keep this view under which name?", `view-${today}`);
  if (!name) return;
  const keep = async () => {
    if (!NAME.test(name))
      throw new Error(
        `the view is called '${name.slice(0, 60)}'; expected up to 60 letters, digits, spaces, dots ` +
          "and hyphens",
      );
    await source.keep(state.run, name, { address: location.hash });
  };
  return change(state, keep, `kept as ${name}`, shown);
}

/** Change the kept views, say so, and list them anew. */
async function change(state, run, told, shown) {
  try {
    await run();
    state.mend("keep");
    announce(told);
  } catch (problem) {
    state.fail("keep", problem.message);
  }
  shown();
}
