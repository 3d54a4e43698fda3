// The paths of a circuit as arrows: from where to where, what is lost without them, when they emerged,
// what they move.

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

/** Components whose rows form no path: tables, itself, even to something. */
export const loose = (about) => (about.circuit?.components ?? []).filter((its) => !its.paths.length);

/** What the circuit loses without a component: a share, with its interval. Of every kind with the
 *  attention that the circuit computes by itself; where that was not measured, as it is prescribed. */
export const lostOf = ({ lost, lost_computed: computed }) => computed ?? lost;

/** Heads that do something in the circuit, as "2.0". */
export function headsOf(about) {
  return new Set(
    (about.circuit?.components ?? []).flatMap(({ layer, heads }) => heads.map((head) => headName({ layer, head }))),
  );
}

/** A ghost shows rows that give at least this much. */
const FAINT = 0.15;

/** Every head of a model, layer by layer. */
export const everyHead = ({ layers, heads }) =>
  Array.from({ length: layers * heads }, (_, n) => ({ layer: Math.floor(n / heads), head: n % heads }));

/** A head's name, as "2.0". */
export const headName = ({ layer, head }) => `${layer}.${head}`;

/** Every path that there could be: of each head, from each role to each. */
export const everyPath = (maps) =>
  everyHead(maps).flatMap((its) =>
    maps.roles.flatMap((destination) => maps.roles.map((source) => ({ ...its, destination, source }))),
  );

/** Where there is no circuit yet: rows that give a role of their chain more than `least`. */
export function strong(maps, at, least = 0.3) {
  const found = [];
  for (const { layer, head } of everyHead(maps))
    for (const destination of maps.roles)
      for (const source of maps.roles) {
        const path = { layer, head, destination, source };
        if (destination === source || maps.of(at, path) < least) continue;
        found.push({ ...path, key: pathKey(path), kind: "seen", carried: [], routed: [], emerged: null });
      }
  return found;
}

/** The ghost's paths: truth, theory's schedule, another step, or another seed of the fleet
 *  after its last step. */
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
