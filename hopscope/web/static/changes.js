// Changes of heads as text, in the grammar of hopscope/circuits/changes.py. An aim is a
// list of targets with weights, {where, role, weight}; a change gives each role an aim and the rest
// of the rows another, {aims: {role: aim}, rest: aim}, or replaces what the head carries,
// {carried: "mean"}. paint.js makes attention of them.

const CHANGE = /^(\d{1,9})\.(\d{1,9})(?::([^=]+))?=(.+)$/;
const ROLE = /^([^\W\d_](?:[\w '-]*[^\W\d_])?)(?: (\d+)(?:\.(\d+))?)?$/;
const NUMBERED = ["key", "value", "decoy key", "decoy value"];

const only = (where, role = null) => [{ where, role, weight: 1 }];
const WORDS = {
  uniform: only("uniform"),
  itself: only("itself"),
  previous: only("previous"),
  position: only("position"),
  identity: only("itself"),
};
const AS_IS = only("model");
const TOLD = "uniform, itself, previous, position";

/** The head that a change is of, as its key in a table of changes. */
export const headKey = (layer, head) => `${layer}.${head}`;

/** What all texts ask for together, on top of what heads do already; keys are "layer.head". */
export function changesOf(texts, base, model, roles) {
  const changes = new Map(base);
  const said = [];
  for (const text of texts) {
    const { layer, head, reader, what } = partsOf(text, roles);
    if (layer >= model.layers || head >= model.heads) {
      throw new Error(
        `there is no head ${layer}.${head}; this model has layers 0 … ` +
          `${model.layers - 1} with heads 0 … ${model.heads - 1}`,
      );
    }
    const key = headKey(layer, head);
    if (said.some(([at, row]) => at === key && (row === reader || row === null || reader === null))) {
      throw new Error(`head ${key} is given twice ("${text}"); say what it does once`);
    }
    said.push([key, reader]);
    changes.set(
      key,
      reader === null ? ofHead(text, what, roles) : withRow(text, changes.get(key), reader, what, roles),
    );
  }
  return changes;
}

function partsOf(text, roles) {
  const match = CHANGE.exec(text);
  if (match === null) {
    throw new Error(
      `the change "${text.slice(0, 100)}" is not understood; expected ` +
        "LAYER.HEAD=WHAT, e.g. 3.0=uniform, or LAYER.HEAD:READER=WHAT for one row",
    );
  }
  const reader = match[3] === undefined ? null : roleOf(match[3], roles);
  return { layer: Number(match[1]), head: Number(match[2]), reader, what: match[4] };
}

/** A role by its name, in the form in which the table has it. */
function roleOf(text, roles) {
  const [, kind, fact, slot] = ROLE.exec(text.trim()) ?? [];
  if (kind === undefined || (fact === undefined && NUMBERED.includes(kind))) {
    throw new Error(`there is no role "${text}": roles are ${roles.join(", ")}`);
  }
  const [number, nth] = [Number(fact ?? 0), Number(slot ?? 0)];
  const bare = !NUMBERED.includes(kind) && number === 0 && nth === 0;
  const name = bare ? kind : `${kind} ${number}${nth ? `.${nth}` : ""}`;
  if (!roles.includes(name)) {
    throw new Error(`there is no role "${name}" here; the roles are ${roles.join(", ")}`);
  }
  return name;
}

function ofHead(text, what, roles) {
  if (what === "mean" || what === "resample") return { carried: what };
  if (Object.hasOwn(WORDS, what)) return { aims: {}, rest: WORDS[what] };
  const [paths, rest = "", more] = what.replaceAll(">", "<").split("/");
  if (!paths.includes("<") || more !== undefined || !["", "uniform", "itself", "identity"].includes(rest)) {
    throw new Error(
      `the change "${text.slice(0, 100)}" is not understood; WHAT is ${TOLD}, mean, ` +
        'resample, or paths like "query<value 0" with "/itself" for the other rows if not uniform',
    );
  }
  const aims = {};
  for (const path of paths.split(",")) {
    const [reader, source] = pathOf(path, roles);
    if (Object.hasOwn(aims, reader)) throw new Error(`a mechanism gives one role two aims: ${what}`);
    aims[reader] = only("own", source);
  }
  return { aims, rest: WORDS[rest || "uniform"] };
}

function withRow(text, before, reader, what, roles) {
  if (before?.carried) {
    throw new Error(
      `the change "${text.slice(0, 100)}" is of one row; what the head carries is ` + "replaced already",
    );
  }
  const { aims, rest } = before ?? { aims: {}, rest: AS_IS };
  return { aims: { ...aims, [reader]: ofRow(text, reader, what, roles) }, rest };
}

function ofRow(text, reader, what, roles) {
  if (Object.hasOwn(WORDS, what)) return WORDS[what];
  const arrows = what.replaceAll(">", "<");
  if (!arrows.includes("<") && !ROLE.test(what.trim())) {
    throw new Error(
      `the change "${text.slice(0, 100)}" is not understood; WHAT of one row is ` +
        `${TOLD}, or a role that it reads`,
    );
  }
  const [named, source] = arrows.includes("<") ? pathOf(arrows, roles) : [reader, roleOf(what, roles)];
  if (named !== reader) {
    throw new Error(`the change "${text.slice(0, 100)}" is of the row ${reader}, and names ${named}`);
  }
  return only("own", source);
}

function pathOf(text, roles) {
  const at = text.indexOf("<");
  return [text.slice(0, at), text.slice(at + 1)].map((each) => roleOf(each, roles));
}
