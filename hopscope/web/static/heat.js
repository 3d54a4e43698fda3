// Draws matrices: on a canvas for the page, as rectangles for files.

import { shade } from "./colours.js";
import { s } from "./dom.js";

const seen = new WeakMap(); // the image on each canvas, so that an equal one is not drawn again

/** Draw numbers [rows, columns] between 0 and 1 as pixels; NaN stays empty. */
export function draw(canvas, matrix, rows, columns) {
  const image = new ImageData(columns, rows);
  matrix.forEach((share, n) => {
    if (!Number.isNaN(share)) image.data.set([...shade(share), 255], 4 * n);
  });
  const before = seen.get(canvas);
  if (before?.width === columns && before.data.every((its, n) => its === image.data[n])) return;
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  canvas.getContext("2d").putImageData(image, 0, 0);
  seen.set(canvas, image);
}

/** The same matrix as an SVG group at a place. */
export function squares(matrix, rows, columns, cell, left, top) {
  const made = [];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const share = matrix[row * columns + column];
      if (Number.isNaN(share)) continue;
      made.push(
        s("rect", {
          x: left + column * cell,
          y: top + row * cell,
          width: cell,
          height: cell,
          fill: `rgb(${shade(share).join(" ")})`,
        }),
      );
    }
  return s("g", {}, made);
}

/** The cell under the pointer: [row, column], or null. */
export function under(canvas, event, rows, columns) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
  const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
  return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : null;
}
