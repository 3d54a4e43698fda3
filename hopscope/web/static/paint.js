// What a change makes of one head's attention, as hopscope/circuits/painter.py does it.

const TABLES = ["position", "token"];

/** What the table of a head is called, among others. */
export const tableName = (where, head) => `${where} ${head.join(".")}`;

const isTable = ([{ where }]) => TABLES.includes(where);

/** The names of the tables that rows of these changes follow. */
export function tablesOf(changes) {
  const patterns = [...changes.values()].filter((its) => !its.carried);
  const every = patterns.flatMap(({ targets, rest }) => [...Object.values(targets), rest]);
  return new Set(every.filter(isTable).map(([{ where, head }]) => tableName(where, head)));
}

/** Refuse rows that are to read a role of their chain which comes after them in every example: they
 *  would stay where they are, which is another change. */
export function checkPaths(changes, exam, causal) {
  for (const [head, { targets = {} }] of changes) {
    for (const [reader, target] of Object.entries(targets)) {
      if (target.some(({ where }) => where !== "own") || !isBlind(reader, target, exam, causal)) continue;
      throw new Error(
        `${head}: ${reader} cannot look at ${told(target)}, which comes after it in every example, and ` +
          "attention is causal",
      );
    }
  }
}

/** Are there rows of this reader, none of which sees a source? */
function isBlind(reader, target, exam, causal) {
  const { count, length, table } = exam;
  let rows = 0;
  for (let start = 0; start < count * length; start += length) {
    for (let at = 0; at < length; at++) {
      if (table[exam.role[start + at]] !== reader) continue;
      rows += 1;
      const place = { exam, start, at, last: causal ? at : length - 1 };
      if (target.some((source) => leads(source, place).length)) return false;
    }
  }
  return rows > 0;
}

/** The roles of a target in words, with their weights where there are several. */
function told(target) {
  if (target.length === 1) return target[0].role;
  return target.map(({ role, weight }) => `${weight.toFixed(2)} ${role}`).join(" + ");
}

/** Writes what the change makes of one head's attention in one example over `pattern`, a row for
 *  each of the last `read` positions. */
export function paint(change, pattern, { exam, example, read, causal, tables }) {
  const { length, table } = exam;
  for (let row = 0; row < read; row++) {
    const at = length - read + row;
    const role = table[exam.role[example * length + at]];
    const target = Object.hasOwn(change.targets, role) ? change.targets[role] : change.rest;
    if (target[0].where === "model") continue;
    const line = pattern.subarray(row * length, (row + 1) * length);
    const place = { exam, start: example * length, at, last: causal ? at : length - 1 };
    line.fill(0);
    if (isTable(target)) fromTable(tables, target[0], line, place);
    else drawn(target, line, place);
    whole(line, place);
  }
}

/** One row of a table, at the positions that can be seen. */
function fromTable(tables, { where, head }, line, { exam, start, at, last }) {
  const kind = where === "token" ? (p) => exam.inputs[start + p] : (p) => p;
  const row = tables.get(tableName(where, head))[kind(at)] ?? []; // a token may be new to the table
  for (let to = 0; to <= last; to++) line[to] = row[kind(to)] ?? 0;
}

/** One row under a target: each source that can be seen with its weight. */
function drawn(target, line, place) {
  for (const source of target) {
    const its = leads(source, place);
    for (const to of its) line[to] += source.weight / its.length;
  }
}

/** Make a row's shares add up to 1; a row that sees no source attends to itself. */
function whole(line, { at, last }) {
  let total = 0;
  for (let to = 0; to <= last; to++) total += line[to];
  if (total > 0) for (let to = 0; to <= last; to++) line[to] /= total;
  else line[at] = 1;
}

/** The positions that are the source and can be seen. */
function leads(source, place) {
  const its = [];
  for (let to = 0; to <= place.last; to++) if (isSource(source, to, place)) its.push(to);
  return its;
}

function isSource({ where, role }, to, { exam, start, at }) {
  if (where === "uniform") return true;
  if (where === "itself") return to === at;
  if (where === "previous") return to === at - 1;
  const of = exam.table[exam.role[start + to]] === role;
  const same = exam.chain[start + to] === exam.chain[start + at];
  return { own: of && same, all: of, others: of && !same }[where];
}
