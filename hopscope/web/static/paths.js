// The paths of a circuit as arrows: from where to where, what is lost without them, when they emerged,
// what they move.

const NUMBERED = ["key", "value", "decoy key", "decoy value"];
const NAMED = 0.1;

/** A role as its text: "value 0", "query". */
export function roleText(role) {
  if (typeof role === "string") return role;
  const { kind, fact = 0, slot = 0 } = role;
  if (!NUMBERED.includes(kind) && !fact && !slot) return kind;
  return `${kind} ${fact}${slot ? `.${slot}` : ""}`;
}

const PATH = /(\d+)\.(\d+):? ?(.+?) ?[→>] ?(.+)/;

/** "2.0:value 0>query" (or a key), an object, or null if it is neither. */
export function readPath(its) {
  if (typeof its === "object" && its)
    return {
      layer: its.layer,
      head: its.head ?? -1,
      destination: roleText(its.destination),
      source: roleText(its.source),
    };
  const found = PATH.exec(its);
  return found
    ? { layer: Number(found[1]), head: Number(found[2]), source: found[3], destination: found[4] }
    : null;
}

export function pathKey(path) {
  return `${path.layer}.${path.head} ${path.source} → ${path.destination}`;
}

/** Every path of the circuit. */
export function arrows(about) {
  const circuit = about.circuit;
  if (!circuit) return [];
  const when = {};
  for (const [text, step] of Object.entries(about.emerged ?? {})) {
    const path = readPath(text);
    if (path) when[pathKey(path)] = step;
  }
  return circuit.components.flatMap((component) =>
    component.paths.map((kept) => {
      const path = readPath(kept);
      const patched = patchedOf(circuit.account, component, path);
      return {
        ...path,
        key: pathKey(path),
        component,
        kind: component.kind,
        emerged: when[pathKey(path)] ?? null,
        ...symbols(patched, about.task.graph ?? []),
      };
    }),
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
    (about.circuit?.components ?? []).flatMap(({ layer, heads }) => heads.map((head) => `${layer}.${head}`)),
  );
}

/** What patching found along one path: heads that attend alike are patched one by one. */
function patchedOf(account, { layer, destinations }, { head, source }) {
  const wanted = destinations.map(roleText).sort().join();
  return (account?.patched ?? []).find(
    ({ site }) =>
      site.layer === layer &&
      site.heads.includes(head) &&
      site.source !== null &&
      roleText(site.source) === source &&
      site.destinations.map(roleText).sort().join() === wanted,
  );
}

/** Symbols that travel to the answer, and those by which later heads find their places. */
function symbols(patched, facts) {
  const hop = Object.fromEntries(facts.map((fact, n) => [fact.split("->")[1].trim(), n + 1]));
  const counts = (share) => share.mean >= NAMED && share.low > 0;
  const moves = patched?.moves ?? [];
  const carried = [
    ...new Set(
      moves
        .filter((its) => its.way === "values" && hop[its.symbol] === its.hop && counts(its.share))
        .map((its) => its.symbol),
    ),
  ];
  const told = [...new Set(moves.filter((its) => counts(its.left)).map((its) => its.symbol))].filter(
    (its) => !carried.includes(its),
  );
  return { carried, told };
}

/** A ghost shows rows that give at least this much. */
const FAINT = 0.15;

/** Where there is no circuit yet: rows that give a role of their chain more than `least`. */
export function strong(maps, at, least = 0.3) {
  const { own, roles, layers, heads } = maps;
  const found = [];
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++) {
      roles.forEach((destination, r) =>
        roles.forEach((source, c) => {
          if (r !== c && own(at, layer, head, r, c) >= least)
            found.push({
              layer,
              head,
              destination,
              source,
              key: pathKey({ layer, head, destination, source }),
              kind: "seen",
              carried: [],
              told: [],
              emerged: null,
            });
        }),
      );
    }
  return found;
}

/** The ghost's paths: truth, theory's schedule, another step, or another seed of the fleet
 *  after its last step. */
export function ghostOf(about, ghost, maps, fleet) {
  if (ghost === "planted")
    return (about.planted ?? [])
      .map(readPath)
      .filter(Boolean)
      .map((its) => ({ ...its, share: 1 }));
  if (ghost === "theory")
    return (about.theory?.readings ?? []).map((its) => ({ ...readPath(its), share: 1 }));
  const [, what, which] = /^(step|seed)-(\d+)$/.exec(ghost) ?? [];
  const seen = what === "seed" ? fleet?.maps : maps;
  const known = what === "seed" ? fleet?.seeds : maps?.steps;
  const at = known?.indexOf(Number(which)) ?? -1;
  return at < 0 ? [] : strong(seen, at, FAINT).map((its) => ({ ...its, share: seen.of(at, its) }));
}
