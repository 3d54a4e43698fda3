// The paths of a circuit as data for arrows: ends, loss without them, emergence, and moved symbols.

function pathKey(path) {
  return `${path.layer}.${path.head} ${path.source} → ${path.destination}`;
}

/** Every path of the circuit. */
export function arrows(about) {
  return (about.circuit?.components ?? []).flatMap((component) =>
    component.paths.map((path) => ({
      ...path,
      key: pathKey(path),
      component,
      kind: component.kind,
      emerged: about.emerged?.[path.name] ?? null,
    })),
  );
}

/** Components without paths, such as attention by position or to itself. */
export const loose = (about) => (about.circuit?.components ?? []).filter((its) => !its.paths.length);

/** The share that the circuit loses without a component, with its interval: with computed
 *  attention, or with prescribed attention if that was not measured. */
export const lostOf = ({ lost, lost_computed: computed }) => computed ?? lost;

/** The names of the circuit's heads, as "2.0". */
export function headsOf(about) {
  return new Set(
    (about.circuit?.components ?? []).flatMap(({ layer, heads }) => heads.map((head) => headName({ layer, head }))),
  );
}

/** A ghost shows rows with at least this attention. */
const FAINT = 0.15;

/** Every head of a model, layer by layer. */
export const everyHead = ({ layers, heads }) =>
  Array.from({ length: layers * heads }, (_, n) => ({ layer: Math.floor(n / heads), head: n % heads }));

/** Does the model have this head? */
export const hasHead = ({ layers, heads }, { layer, head }) => layer < layers && head < heads;

/** A head's name, as "2.0". */
export const headName = ({ layer, head }) => `${layer}.${head}`;

/** Every possible path: of each head, from each role to each role. */
export const everyPath = (maps) =>
  everyHead(maps).flatMap((its) =>
    maps.roles.flatMap((destination) => maps.roles.map((source) => ({ ...its, destination, source }))),
  );

/** Paths to draw without a circuit: attention above `least` to a role of the own chain. */
export function strong(maps, at, least = 0.3) {
  return everyPath(maps)
    .filter((path) => path.destination !== path.source && maps.of(at, path) >= least)
    .map((path) => ({ ...path, key: pathKey(path), kind: "seen", carried: [], routed: [], emerged: null }));
}

/** The paths of the ghost (a comparison): the planted circuit, the schedule of the theory, another
 *  step, or another seed of the fleet at its last step. */
export function ghostOf(about, ghost, maps, fleet) {
  if (ghost === "planted")
    return (about.planted ?? []).map((its) => ({ ...its, share: 1 }));
  if (ghost === "theory")
    return (about.theory?.readings ?? []).map((its) => ({ ...its, head: -1, share: 1 }));
  const [, what, which] = /^(step|seed)-(\d+)$/.exec(ghost) ?? [];
  const seen = what === "seed" ? fleet?.maps : maps;
  const known = what === "seed" ? fleet?.seeds : maps?.steps;
  const at = known?.indexOf(Number(which)) ?? -1;
  return at < 0 ? [] : strong(seen, at, FAINT).map((its) => ({ ...its, share: seen.of(at, its) }));
}
