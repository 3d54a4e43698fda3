// Access to the arrays of a run: attention between roles (Maps), and probes of roles (Contents).

/** Role maps of all checkpoints. */
export class Maps {
  constructor(arrays, roles) {
    this.steps = [...arrays.steps.data];
    this.roles = roles;
    this.arrays = arrays;
    [, this.layers, this.heads] = arrays.own.shape;
    this.place = new Map(roles.map((role, n) => [role, n]));
  }

  /** Attention along a path, within a chain (`own`) or to all `others`. */
  of(at, { layer, head, destination, source }, kind = "own") {
    const [r, c] = [this.place.get(destination), this.place.get(source)];
    if (r === undefined || c === undefined || at < 0) return 0;
    const n = this.roles.length;
    return this.arrays[kind].data[(((at * this.layers + layer) * this.heads + head) * n + r) * n + c];
  }

  /** One head's map [destination, source] in an order of roles. */
  matrix(kind, at, { layer, head }, order) {
    const found = new Float32Array(order.length ** 2);
    order.forEach((destination, r) =>
      order.forEach((source, c) => {
        found[r * order.length + c] = this.of(at, { layer, head, destination, source }, kind);
      }),
    );
    return found;
  }

  /** A row's attention to its own position and to the previous one: [itself, previous]. */
  beside(at, { layer, head }, destination) {
    const n = this.roles.length;
    const where = ((at * this.layers + layer) * this.heads + head) * n + this.place.get(destination);
    return ["itself", "previous"].map((kind) => this.arrays[kind].data[where]);
  }
}

/** One head's attention in an example: the number of positions, and shares [destination, source]. */
export function headOf({ shape: [, heads, size], data }, { layer, head }) {
  const start = (layer * heads + head) * size * size;
  return { size, shares: data.subarray(start, start + size * size) };
}

/** Probes: how well each symbol can be decoded, [layer, role, symbol], at each measured checkpoint. */
export class Contents {
  constructor({ steps, own }, names, all) {
    const [, roles, symbols] = own.shape.slice(-3);
    const size = own.shape.slice(-3).reduce((a, b) => a * b);
    const row = (n) => own.data.subarray(n * size, (n + 1) * size);
    this.of = new Map([...steps.data].map((step, n) => [step, row(n)]));
    Object.assign(this, { all, roles, symbols });
    this.place = new Map(names.map((role, n) => [role, n]));
  }

  /** Add the checkpoints that were measured earlier; return this. */
  with(earlier) {
    for (const [step, row] of earlier?.of ?? []) if (!this.of.has(step)) this.of.set(step, row);
    return this;
  }

  /** Was the checkpoint with this index measured? */
  has(at) {
    return this.of.has(this.all[at]);
  }

  share(at, level, role, symbol) {
    const row = this.of.get(this.all[at]);
    const r = this.place.get(role);
    return row && r !== undefined ? row[(level * this.roles + r) * this.symbols + symbol] : NaN;
  }
}

/** The Contents of an answer with heads switched off, at the checkpoint with index `at` of `all`; its
 *  lists are [layer, role, symbol]. */
export function cutOf({ own, roles }, all, at) {
  const data = Float32Array.from(own.flat(2).map((its) => its ?? NaN));
  const shape = [1, own.length, own[0].length, own[0][0].length];
  return new Contents({ steps: { data: [all[at]] }, own: { shape, data } }, roles, all);
}

/** The squares to draw: of the changed model if known, else of the unchanged model (`old`). */
export function squaresOf({ contents, cut, off, which }) {
  if (!off.length) return { contents, old: false };
  const fits = cut?.of === which;
  return fits && cut.contents
    ? { contents: cut.contents, before: contents, old: false }
    : { contents, old: true, why: fits ? cut.why : "" };
}
