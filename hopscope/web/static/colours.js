// Colours with a meaning. The style sheet defines each once, for light and dark; code that draws on
// a canvas reads their current values here.

/** A colour of the style sheet, such as "--ink", as "rgb(…)", read from a temporary element. */
export function ink(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  probe.style.forcedColorAdjust = "none"; // maps keep their shades even with forced colours
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const HOPS = 8;
const CHAINS = 8;

/** The colour of a symbol: the first is grey, the others have the colours of hops. */
export function ofSymbol(symbols, symbol) {
  const place = symbols.indexOf(symbol);
  return place < 1 ? "var(--known)" : ofHop(place - 1);
}

export function ofHop(number) {
  return `var(--hop-${number % HOPS})`;
}

/** The colour of a token; tokens without a chain (fillers) are grey. */
export const ofToken = ({ role, chain }) => ofChain(role === "other" ? -1 : chain);

export function ofChain(chain) {
  return chain < 0 ? "var(--known)" : `var(--chain-${chain % CHAINS})`;
}

/** A cache of the theme's colours, cleared when the theme changes. */
let looked = {};
export function forgetColours() {
  looked = {};
}

/** The colour of a share between 0 and 1 of attention, as [r, g, b]. */
export function shade(share) {
  looked.heat ??= ramp();
  return looked.heat[Math.round(Math.min(Math.max(share, 0), 1) * 255)];
}

/** 256 colours interpolated between those of the style sheet. */
function ramp() {
  const all = stops("heat", 5);
  return Array.from({ length: 256 }, (_, n) => between(all, n / 255));
}

/** The colour of a moment of the training, from 0 (first, dark) to 1 (last, bright). */
export function ofMoment(share) {
  looked.time ??= stops("time", 4);
  return `rgb(${between(looked.time, Math.min(Math.max(share, 0), 1)).join(" ")})`;
}

/** A numbered sequence of the style sheet's colours, as [r, g, b]. */
function stops(name, count) {
  return Array.from({ length: count }, (_, n) => ink(`--${name}-${n}`).match(/\d+/g).map(Number));
}

function between(all, share) {
  const place = share * (all.length - 1);
  const low = Math.min(Math.floor(place), all.length - 2);
  return all[low].map((value, c) => Math.round(value + (all[low + 1][c] - value) * (place - low)));
}
