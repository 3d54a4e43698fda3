// Settings that the browser stores between visits.

/** Read a stored setting; with a value, store it first, in the given storage. Some frames have no
 *  storage, nor has a browser that blocks site data: the value is then null. */
export function remembered(name, value, where = "localStorage") {
  try {
    const kept = globalThis[where];
    if (value) kept.setItem(`hopscope-${name}`, value);
    return kept.getItem(`hopscope-${name}`);
  } catch {
    return null;
  }
}
