// Parses changes of heads: 1.0=mean, or 1.0:query=uniform for the attention row of a role. A change
// replaces the head's output, {carried: "mean"}, or the attention of its rows, {rows: {role: word},
// rest: word}; a row without a word is unchanged.

const CHANGE = /^(\d+\.\d+)(?::([^=]+))?=(uniform|itself|previous|position|mean|resample)$/;
const CARRIED = ["mean", "resample"];

/** Parse texts into changes, added to those in `before`; keys are "layer.head". */
export function changesOf(texts, before = new Map()) {
  const changes = new Map(before);
  const said = new Map();
  for (const text of texts) {
    const [, head, role, word] = CHANGE.exec(text) ?? [];
    if (!head || (role && CARRIED.includes(word)))
      throw new Error(`the change "${text.slice(0, 100)}" is not understood by a saved page`);
    const rows = said.get(head) ?? [];
    if (rows.includes(role) || rows.includes(undefined) || (rows.length && !role))
      throw new Error(`head ${head} is given twice ("${text}"); give one change for each head or row`);
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

/** The changes of each layer, by the number of the head. */
export function byLayer(changes, layers) {
  const found = Array.from({ length: layers }, () => new Map());
  for (const [key, change] of changes) {
    const [layer, head] = key.split(".").map(Number);
    found[layer].set(head, change);
  }
  return found;
}
