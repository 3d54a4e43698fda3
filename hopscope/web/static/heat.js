// Draws matrices: on a canvas for the page, as rectangles for files.

import { shade } from "./colours.js";
import { box, label, s } from "./dom.js";

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

/** Matrices [rows, columns] with their names as one SVG with cells of this size; `all` are {name,
 *  matrix, across, down}, the last two in numbers of matrices. */
export function picture(all, rows, columns, size) {
  const [wide, high] = [Math.max(56, columns * size + 18), rows * size + 34];
  const [across, down] = ["across", "down"].map((its) => 1 + Math.max(...all.map((each) => each[its])));
  const made = s("svg", { viewBox: `0 0 ${across * wide + 20} ${down * high}` });
  for (const { name, matrix, ...place } of all) {
    const [left, top] = [10 + place.across * wide, 10 + place.down * high];
    made.append(label(left, top + 9, name, { class: "role" }));
    matrix.forEach((share, n) => {
      const [x, y] = [left + (n % columns) * size, top + 14 + Math.floor(n / columns) * size];
      if (!Number.isNaN(share)) made.append(box(x, y, size, size, { fill: `rgb(${shade(share).join(" ")})` }));
    });
  }
  return made;
}

/** Call `run` with the cell under the pointer, [row, column], of a canvas with `size()` rows and
 *  columns; null once there is none. */
export function onCell(canvas, size, run) {
  const cell = ({ clientX, clientY }) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const place = [(clientY - top) / height, (clientX - left) / width].map((share) => Math.floor(share * size()));
    return place.every((its) => its >= 0 && its < size()) ? place : null;
  };
  canvas.addEventListener("pointermove", (event) => run(cell(event)));
  canvas.addEventListener("pointerleave", () => run(null));
}
