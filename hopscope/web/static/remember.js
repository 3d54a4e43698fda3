// Settings that the browser stores between visits.

/** Read a stored setting; with a value, store it first. Some frames have no storage. */
export function remembered(name, value) {
  try {
    if (value) localStorage.setItem(`hopscope-${name}`, value);
    return localStorage.getItem(`hopscope-${name}`);
  } catch {
    return null;
  }
}
