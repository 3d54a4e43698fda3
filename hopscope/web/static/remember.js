// What the browser keeps for this reader from one visit to the next.

/** What is kept under a name, or with a value: keep it. A page in a frame of its own origin may keep
 *  nothing. */
export function remembered(name, value) {
  try {
    if (value) localStorage.setItem(`hopscope-${name}`, value);
    return localStorage.getItem(`hopscope-${name}`);
  } catch {
    return null;
  }
}
