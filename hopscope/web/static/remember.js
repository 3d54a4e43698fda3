// What the browser keeps for this reader from one visit to the next.

/** What is kept under a name, or with a value: keep it; `where` says for how long. A page in a frame of
 *  its own origin may keep nothing, nor may any where site data are blocked. */
export function remembered(name, value, where = "localStorage") {
  try {
    const kept = globalThis[where];
    if (value) kept.setItem(`hopscope-${name}`, value);
    return kept.getItem(`hopscope-${name}`);
  } catch {
    return null;
  }
}
