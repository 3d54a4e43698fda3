// Saves drawings and numbers as files: SVG, PNG, CSV.

const KEPT = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "stroke-linecap",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "dominant-baseline",
  "visibility",
  "display",
];

/** A cell of a CSV file. A text that begins with = + - @ gets a ', because spreadsheets would read
 *  it as a formula. */
export function cell(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  let text = String(value ?? "");
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(columns, rows) {
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** The text of a standalone SVG, with the computed styles written into it. */
export function standalone(drawn, background) {
  const copy = drawn.cloneNode(true);
  const pairs = [[drawn, copy]];
  while (pairs.length) {
    const [from, to] = pairs.pop();
    const seen = getComputedStyle(from);
    for (const name of KEPT) {
      const value = seen.getPropertyValue(name);
      if (value) to.setAttribute(name, value);
    }
    for (const name of ["class", "style", "tabindex", "role"]) to.removeAttribute(name);
    [...from.children].forEach((child, n) => pairs.push([child, to.children[n]]));
  }
  const { width, height } = drawn.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width, height, fill: background }))
    paper.setAttribute(name, value);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

/** The text of an SVG as PNG, at twice the size. */
export async function png(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Download a file to the user's computer. */
export function handOut(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement("a");
  [link.href, link.download] = [url, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
