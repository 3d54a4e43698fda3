// @ts-check
// Changes of heads as texts: 1.0=mean, or 1.0:query=uniform for the attention row of a role; the
// page's commands and addresses have them, and the engine reads them.

/** @typedef {import("./state.js").Change} Change */

export const WAY = /^(uniform|itself|previous|position|mean|resample)$/;
export const REPLACED = ["mean", "resample"]; // words that replace what a head brings, not where it looks
const ITEM = /^(\d{1,3})\.(\d{1,3})(?::([^=:;]{1,40}))?(?:=([a-z]{1,10}))?$/;

/** Parse one change: "1.0", "2.1:query", "2.1:query=itself"; null if it is invalid.
 *  @returns {Change | null} */
export function item(text, as = "uniform") {
  const found = ITEM.exec(text);
  if (!found) return null;
  const [, layer, head, destination = "", word] = found;
  return { layer: Number(layer), head: Number(head), destination, as: word && WAY.test(word) ? word : as };
}

/** The name of a change, without the replacement.
 *  @param {{layer: number, head: number, destination?: string}} its */
export function named(its) {
  return `${its.layer}.${its.head}${its.destination ? `:${its.destination}` : ""}`;
}

/** The change as an argument of `hopscope ablate --head`.
 *  @param {Change} its */
export function asFlag(its) {
  return `${named(its)}=${its.as}`;
}

/** No changes: of each layer, a Map by the number of the head. */
export const unchanged = (layers) => Array.from({ length: layers }, () => new Map());

/** Parse texts into changes of each layer, added to those in `before`. A change is a word for each
 *  row of a head, {rows: {role: word}, rest: word}; a row without a word is unchanged. */
export function changesOf(texts, before) {
  const changes = before.map((its) => new Map(its));
  const said = new Map();
  for (const text of texts) {
    const its = item(text, "");
    if (!its?.as) throw new Error(`"${text}" changes no head; expected HEAD=WAY or HEAD:ROLE=WAY`);
    const { layer, head, destination, as } = its;
    const name = named({ layer, head });
    const rows = said.get(name) ?? [];
    if (rows.includes(destination) || rows.includes("") || (rows.length && !destination))
      throw new Error(`head ${name} is given twice ("${text}"); give one change for each head or row`);
    said.set(name, [...rows, destination]);
    const own = changes[layer];
    own.set(head, rowOf(own.get(head), destination, as));
  }
  return changes;
}

function rowOf(before, role, word) {
  if (!role) return { rows: {}, rest: word };
  const { rows = {}, rest = null } = before ?? {};
  return { rows: { ...rows, [role]: word }, rest };
}

/** The word for the rows of a role. */
export const wordOf = ({ rows, rest }, role) => (Object.hasOwn(rows, role) ? rows[role] : rest);

/** Does one of these changes of a layer replace what a head brings to a row? */
export const replaces = (changes) =>
  [...changes.values()].some(({ rows, rest }) => [rest, ...Object.values(rows)].some((its) => REPLACED.includes(its)));
