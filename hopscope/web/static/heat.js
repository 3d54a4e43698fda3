// Matrices as pictures: a canvas to look at, rectangles to save.

import { ramp } from "./colours.js";
import { s } from "./dom.js";

/** Colours change with the theme; until then they stand. */
let colours = null;
export function forgetColours() { colours = null; }

/** The colour of a share between 0 and 1, as one of 256. */
export function shade(share) {
  colours ??= ramp();
  return colours[Math.round(Math.min(Math.max(share, 0), 1) * 255)];
}

/** Draw [rows, columns] numbers between 0 and 1; a number that is missing stays empty. */
export function draw(canvas, matrix, rows, columns, cell = 1) {
  const size = [columns * cell, rows * cell];
  if (canvas.width !== size[0]) canvas.width = size[0];
  if (canvas.height !== size[1]) canvas.height = size[1];
  const context = canvas.getContext("2d", { willReadFrequently: false });
  const image = context.createImageData(columns * cell, rows * cell);
  for (let y = 0; y < rows * cell; y++) {
    const row = Math.floor(y / cell) * columns;
    for (let x = 0; x < columns * cell; x++) {
      const share = matrix[row + Math.floor(x / cell)];
      if (Number.isNaN(share)) continue;
      const [r, g, b] = shade(share), at = 4 * (y * columns * cell + x);
      image.data[at] = r; image.data[at + 1] = g; image.data[at + 2] = b; image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

/** The same as an SVG group at a place. */
export function squares(matrix, rows, columns, cell, left = 0, top = 0) {
  const made = [];
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
    const share = matrix[row * columns + column];
    if (Number.isNaN(share)) continue;
    made.push(s("rect", { x: left + column * cell, y: top + row * cell, width: cell, height: cell, fill: `rgb(${shade(share).join(" ")})` }));
  }
  return s("g", {}, made);
}

/** What lies under a pointer: [row, column], or null. */
export function under(canvas, event, rows, columns) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
  const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
  return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : null;
}
