// Formats numbers and names as text.

const WHOLE = new Intl.NumberFormat("en-US"); // made once, because making it is slow

/** A number with about three significant digits. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-9) return "0"; // below the precision of float32
  if (size < 1e-4) return value.toExponential(1);
  if (size < 0.1) return value.toFixed(4);
  return size < 10 ? value.toFixed(3) : value.toFixed(size < 100 ? 1 : 0);
}

/** Attention for tables: three digits, because it comes in half precision. */
export const digits = (share) => Number(share.toPrecision(3));

/** A share in percent. */
export function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

/** The kinds of components in words. */
export const KINDS = { moves: "moves content", routes: "routes later heads", weak: "weak" };

/** A whole number with thin spaces: 57 000. */
export function whole(value) {
  return value === null || value === undefined ? "–" : WHOLE.format(Math.round(value));
}

/** "1 head", "2 heads". */
export function counted(count, what) {
  return `${whole(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** What is added to "fresh examples" if these are examined on their last position alone, unlike
 *  validation examples. */
export const lastAlone = ({ task }) => (task.labelled ? ", last position alone" : "");

/** The text shown before numbers arrive: they are being measured, or there is no checkpoint yet. */
export function waiting({ about, steps }, measured) {
  if (steps.length) return `${measured} …`;
  const goesOn = about.state === "in training" ? "" : `: \`hopscope resume ${about.name}\` trains it`;
  return `No checkpoint yet${goesOn}.`;
}

/** The short name of a role of our tasks (q, k0, v1); any other name is unchanged. */
export function shortRole(role) {
  const found = /^(query|key|value)(?: (\d+)(?:\.(\d+))?)?$/.exec(role);
  if (!found) return role;
  const [, kind, fact, slot] = found;
  if (kind === "query") return fact && fact !== "0" ? `q${fact}` : "q";
  return `${kind[0]}${fact ?? ""}${slot ? `.${slot}` : ""}`;
}

/** Roles in the order of a chain: query, then key and value of each hop. */
export function chainOrder(roles) {
  const place = (role) => {
    const [, kind, fact] = /^(.*?)(?: (\d+)(?:\.\d+)?)?$/.exec(role);
    const rank = ["query", "key", "value"].indexOf(kind);
    return [kind === "query" ? 0 : rank < 0 ? 2 : 1, Number(fact ?? 0), rank < 0 ? 9 : rank];
  };
  return [...roles].sort((a, b) => {
    const [one, other] = [place(a), place(b)];
    return one[0] - other[0] || one[1] - other[1] || one[2] - other[2] || a.localeCompare(b);
  });
}

/** A symbol's name with subscripts: x1 → x₁. */
export function symbolName(name) {
  return name.replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
}

/** A changed head or row in words. */
export function changeWords(item) {
  return item.destination
    ? `head ${item.layer}.${item.head} at ${item.destination}`
    : `head ${item.layer}.${item.head}`;
}

export const WAYS = [
  ["uniform", "attend evenly"],
  ["itself", "attend to itself"],
  ["previous", "attend to the previous position"],
  ["position", "attend by position"],
  ["mean", "bring its mean"],
  ["resample", "bring another example's"],
];
