// What a change makes of one head's attention, as hopscope/circuits/painter.py does it.

const FROM_AVERAGE = ["position", "place"];

/** The model's own attention averaged over examples: over all rows at one position or, given a
 *  role, over those whose chain has that role at the same place, too. */
export class Averages {
  constructor(exam, read, change) {
    Object.assign(this, { exam, read });
    const aims = [change.rest, ...Object.values(change.aims)];
    const asked = aims.filter(asksForAverage).map(([{ role }]) => role);
    this.sums = new Map(asked.map((role) => [role, new Map()]));
  }

  /** Take one example's attention into account, [read, length]. */
  add(example, pattern) {
    const { length } = this.exam;
    for (const [role, kinds] of this.sums) {
      for (let row = 0; row < this.read; row++) {
        const kind = this.kind(example, row, role);
        if (!kinds.has(kind)) kinds.set(kind, { count: 0, sum: new Float64Array(length) });
        const its = kinds.get(kind);
        its.count += 1;
        for (let to = 0; to < length; to++) its.sum[to] += pattern[row * length + to];
      }
    }
  }

  /** The average of the rows like this one. */
  of(example, row, role) {
    const { sum, count } = this.sums.get(role).get(this.kind(example, row, role));
    return sum.map((share) => share / count);
  }

  /** Rows with the same number are alike: position, and where the chain has the role first. */
  kind(example, row, role) {
    const { length, chain, table } = this.exam;
    const start = example * length;
    const at = length - this.read + row;
    if (role === null) return at;
    let first = 0;
    while (
      first < length &&
      !(table[this.exam.role[start + first]] === role && chain[start + first] === chain[start + at])
    )
      first++;
    return first + (length + 1) * at;
  }
}

function asksForAverage(aim) {
  return FROM_AVERAGE.includes(aim[0].where);
}

/** Does the change need the model's average attention? */
export function needsAverages(change) {
  return !change.carried && [change.rest, ...Object.values(change.aims)].some(asksForAverage);
}

/** Refuse rows that are to read a role of their chain which comes after them in every example: they
 *  would stay where they are, which is another change. */
export function checkPaths(changes, exam, causal) {
  for (const [head, { aims = {} }] of changes) {
    for (const [reader, aim] of Object.entries(aims)) {
      if (aim.some(({ where }) => where !== "own") || !isBlind(reader, aim, exam, causal)) continue;
      throw new Error(
        `${head}: ${reader} cannot read ${told(aim)}, which comes after it in every example, and ` +
          "attention is causal",
      );
    }
  }
}

/** Are there rows of this reader, none of which sees a target? */
function isBlind(reader, aim, exam, causal) {
  const { count, length, table } = exam;
  let rows = 0;
  for (let start = 0; start < count * length; start += length) {
    for (let at = 0; at < length; at++) {
      if (table[exam.role[start + at]] !== reader) continue;
      rows += 1;
      const place = { exam, start, at, last: causal ? at : length - 1 };
      if (aim.some(({ where, role }) => targets(where, role, place).length)) return false;
    }
  }
  return rows > 0;
}

/** The roles of an aim in words, with their weights where there are several. */
function told(aim) {
  if (aim.length === 1) return aim[0].role;
  return aim.map(({ role, weight }) => `${weight.toFixed(2)} ${role}`).join(" + ");
}

/** Writes what the change makes of one head's attention in one example over `pattern`, a row for
 *  each of the last `read` positions. */
export function paint(change, pattern, { exam, example, read, causal, averages }) {
  const { length, table } = exam;
  for (let row = 0; row < read; row++) {
    const at = length - read + row;
    const role = table[exam.role[example * length + at]];
    const aim = Object.hasOwn(change.aims, role) ? change.aims[role] : change.rest;
    if (aim[0].where === "model") continue;
    const line = pattern.subarray(row * length, (row + 1) * length);
    if (asksForAverage(aim)) line.set(averages.of(example, row, aim[0].role));
    else drawn(aim, line, { exam, start: example * length, at, last: causal ? at : length - 1 });
  }
}

/** One row under an aim; who sees no target stays where it is. */
function drawn(aim, line, place) {
  line.fill(0);
  let total = 0;
  for (const { where, role, weight } of aim) {
    const its = targets(where, role, place);
    for (const to of its) line[to] += weight / its.length;
    if (its.length) total += weight;
  }
  if (total > 0) for (let to = 0; to <= place.last; to++) line[to] /= total;
  else line[place.at] = 1;
}

/** The positions that are a target and can be seen. */
function targets(where, role, place) {
  const its = [];
  for (let to = 0; to <= place.last; to++) if (isTarget(where, role, to, place)) its.push(to);
  return its;
}

function isTarget(where, role, to, { exam, start, at }) {
  if (where === "uniform") return true;
  if (where === "itself") return to === at;
  if (where === "previous") return to === at - 1;
  const of = exam.table[exam.role[start + to]] === role;
  const same = exam.chain[start + to] === exam.chain[start + at];
  return { own: of && same, all: of, others: of && !same, elsewhere: !(of && same) }[where];
}
