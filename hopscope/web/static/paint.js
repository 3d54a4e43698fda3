// Applies a change to one head's attention, as hopscope/circuits/prescriber.py does.

/** Overwrite `pattern`, one head's attention in one example (a row for each of the last `read`
 *  positions), by a change. `mean` is the head's mean attention by position, in any unit. */
export function paint(change, pattern, { all, example, read, causal, mean }) {
  const { length, roles, role } = all;
  for (let row = 0; row < read; row++) {
    const at = length - read + row;
    const name = roles[role[example * length + at]];
    const word = Object.hasOwn(change.rows, name) ? change.rows[name] : change.rest;
    if (word === null) continue;
    const line = pattern.subarray(row * length, (row + 1) * length);
    const end = causal ? at + 1 : length; // visible positions
    line.fill(0);
    if (word === "uniform") line.fill(1, 0, end);
    if (word === "itself") line[at] = 1;
    if (word === "previous" && at > 0) line[at - 1] = 1;
    if (word === "position") line.set(mean.subarray(at * length, at * length + end));
    whole(line, at);
  }
}

/** Normalise a row to sum 1; an empty row attends to its own position. */
function whole(line, at) {
  const total = line.reduce((sum, share) => sum + share, 0);
  if (total > 0) for (let to = 0; to < line.length; to++) line[to] /= total;
  else line[at] = 1;
}
