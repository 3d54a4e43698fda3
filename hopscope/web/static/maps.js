// Arrays of a run as the panes ask for them: attention between roles, and what roles hold.

/** Role maps of all checkpoints. */
export class Maps {
  constructor(arrays, roles) {
    this.steps = [...arrays.steps.data];
    this.roles = roles;
    this.arrays = arrays;
    [, this.layers, this.heads] = arrays.own.shape;
    this.place = new Map(roles.map((role, n) => [role, n]));
    this.own = (at, layer, head, reader, source) => this.value("own", at, layer, head, reader, source);
  }

  value(kind, at, layer, head, reader, source) {
    const n = this.roles.length;
    return this.arrays[kind].data[
      (((at * this.layers + layer) * this.heads + head) * n + reader) * n + source
    ];
  }

  /** Attention along a path. */
  of(at, { layer, head, reader, source }) {
    const [r, c] = [this.place.get(reader), this.place.get(source)];
    return r === undefined || c === undefined || at < 0 ? 0 : this.own(at, layer, head, r, c);
  }

  /** One head's map [reader, source] in an order of roles. */
  matrix(kind, at, layer, head, order) {
    const found = new Float32Array(order.length ** 2);
    order.forEach((reader, r) =>
      order.forEach((source, c) => {
        found[r * order.length + c] = this.value(
          kind,
          at,
          layer,
          head,
          this.place.get(reader),
          this.place.get(source),
        );
      }),
    );
    return found;
  }

  /** What a row gives to itself, and to the position before: [itself, previous]. */
  beside(at, layer, head, reader) {
    const n = this.roles.length;
    const where = ((at * this.layers + layer) * this.heads + head) * n + this.place.get(reader);
    return ["itself", "previous"].map((kind) => this.arrays[kind].data[where]);
  }
}

/** What roles hold: shares [checkpoint, layer, role, symbol]; of the last checkpoint alone, or of all. */
export class Contents {
  constructor({ steps, own, roles }, names, all) {
    this.shape = own.shape.length === 3 ? [1, ...own.shape] : own.shape;
    this.data = own.data;
    this.steps = steps ? [...steps.data] : [all.at(-1)];
    this.all = all;
    this.place = new Map((roles ?? names).map((role, n) => [role, n]));
  }

  share(at, level, role, symbol) {
    const [, levels, roles, symbols] = this.shape;
    const r = this.place.get(role);
    if (r === undefined) return NaN;
    let row = this.steps.indexOf(this.all[at]);
    if (row < 0) row = this.steps.length === 1 ? 0 : -1;
    return row < 0 ? NaN : this.data[((row * levels + level) * roles + r) * symbols + symbol];
  }
}

/** What an account says that roles hold, when contents were not measured. */
export function contentsOf(account, all) {
  const { shares, roles } = account.holdings;
  const flat = Float32Array.from(shares.flat(2).map((its) => its ?? NaN));
  return new Contents(
    { own: { shape: [shares.length, shares[0].length, shares[0][0].length], data: flat } },
    roles.map((role) => (typeof role === "string" ? role : NAME(role))),
    all,
  );
}

const NAME = ({ kind, fact = 0, slot = 0 }) =>
  kind === "query" && !fact ? kind : `${kind} ${fact}${slot ? `.${slot}` : ""}`;
