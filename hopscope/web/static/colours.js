// Colours that mean something, read from the style sheet, so that light and dark are told there once.

/** The value of a colour of the style sheet: "--ink". */
export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export const HOPS = 8, CHAINS = 8;

/** A symbol (or hop): those that are known from the start are grey, the others as in the curves. */
export function ofSymbol(symbols, symbol, known = 1) {
  const place = symbols.indexOf(symbol);
  return place < known ? "var(--known)" : `var(--hop-${(place - known) % HOPS})`;
}

export function ofHop(number) {
  return `var(--hop-${number % HOPS})`;
}

export function ofChain(chain) {
  return chain < 0 ? "var(--known)" : `var(--chain-${chain % CHAINS})`;
}

/** 256 colours between those that the style sheet names for attention, as [r, g, b]. */
export function ramp() {
  const stops = [0, 1, 2, 3, 4].map((n) => rgb(ink(`--heat-${n}`)));
  return Array.from({ length: 256 }, (_, n) => {
    const place = (n / 255) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
    return stops[low].map((value, c) => Math.round(value + (stops[low + 1][c] - value) * (place - low)));
  });
}

/** A moment of the training between first and last: early is dark, late is bright. */
export function ofMoment(share) {
  const stops = [0, 1, 2, 3].map((n) => rgb(ink(`--time-${n}`)));
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
  return `rgb(${stops[low].map((value, c) => Math.round(value + (stops[low + 1][c] - value) * (place - low))).join(" ")})`;
}

function rgb(text) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text);
  return hex ? [0, 2, 4].map((at) => parseInt(hex[1].slice(at, at + 2), 16)) : [128, 128, 128];
}
