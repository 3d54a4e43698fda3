// Changes of heads as the page asks for them: 1.0=mean, or 1.0:query=uniform for the row of a role. A
// change replaces what the head carries, {carried: "mean"}, or gives rows of its attention something
// else to look at, {rows: {role: word}, rest: word}; without a word a row stays as it is.

const CHANGE = /^(\d+\.\d+)(?::([^=]+))?=(uniform|itself|previous|position|mean|resample)$/;
const CARRIED = ["mean", "resample"];

/** What all of them ask for together, on top of what heads do before; keys are "layer.head". */
export function changesOf(texts, before = new Map()) {
  const changes = new Map(before);
  const said = new Map();
  for (const text of texts) {
    const [, head, role, word] = CHANGE.exec(text) ?? [];
    if (!head || (role && CARRIED.includes(word)))
      throw new Error(`the change "${text.slice(0, 100)}" is not understood by a saved page`);
    const rows = said.get(head) ?? [];
    if (rows.includes(role) || rows.includes(undefined) || (rows.length && !role))
      throw new Error(`head ${head} is given twice ("${text}"); say what it does once`);
    said.set(head, [...rows, role]);
    changes.set(head, CARRIED.includes(word) ? { carried: word } : rowOf(changes.get(head), role, word));
  }
  return changes;
}

function rowOf(before, role, word) {
  if (!role) return { rows: {}, rest: word };
  const { rows = {}, rest = null } = before ?? {};
  return { rows: { ...rows, [role]: word }, rest };
}

/** The same by layer, with heads by their numbers. */
export function byLayer(changes, layers) {
  const found = Array.from({ length: layers }, () => new Map());
  for (const [key, change] of changes) {
    const [layer, head] = key.split(".").map(Number);
    found[layer].set(head, change);
  }
  return found;
}
