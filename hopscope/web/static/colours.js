// Colours that mean something. The style sheet says each once, for light and dark; what is painted
// point by point asks what they are in the theme that holds.

/** A colour of the style sheet, such as "--ink", as "rgb(…)": an element has it for a moment. */
export function ink(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  probe.style.forcedColorAdjust = "none"; // with forced colours too: a map is made of shades
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const HOPS = 8;
const CHAINS = 8;

/** A symbol (or hop): those that are known from the start are grey, the others as in the curves. */
export function ofSymbol(symbols, symbol, known = 1) {
  const place = symbols.indexOf(symbol);
  return place < known ? "var(--known)" : `var(--hop-${(place - known) % HOPS})`;
}

export function ofHop(number) {
  return `var(--hop-${number % HOPS})`;
}

/** A token: those that belong to no chain (fillers) are grey. */
export const ofToken = ({ role, chain }) => ofChain(role === "other" ? -1 : chain);

export function ofChain(chain) {
  return chain < 0 ? "var(--known)" : `var(--chain-${chain % CHAINS})`;
}

/** Colours of the theme, looked up once; forgotten when the theme changes. */
let looked = {};
export function forgetColours() {
  looked = {};
}

/** The colour of a share between 0 and 1 of attention, as [r, g, b]. */
export function shade(share) {
  looked.heat ??= ramp();
  return looked.heat[Math.round(Math.min(Math.max(share, 0), 1) * 255)];
}

/** 256 colours between those that the style sheet names. */
function ramp() {
  const all = stops("heat", 5);
  return Array.from({ length: 256 }, (_, n) => between(all, n / 255));
}

/** A moment of the training between first and last: early is dark, late is bright. */
export function ofMoment(share) {
  looked.time ??= stops("time", 4);
  return `rgb(${between(looked.time, Math.min(Math.max(share, 0), 1)).join(" ")})`;
}

/** Colours that the style sheet names in a row, as [r, g, b]. */
function stops(name, count) {
  return Array.from({ length: count }, (_, n) => ink(`--${name}-${n}`).match(/\d+/g).map(Number));
}

function between(all, share) {
  const place = share * (all.length - 1);
  const low = Math.min(Math.floor(place), all.length - 2);
  return all[low].map((value, c) => Math.round(value + (all[low + 1][c] - value) * (place - low)));
}
