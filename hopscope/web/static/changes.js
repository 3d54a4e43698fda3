// Changes of heads as text, in the grammar of hopscope/circuits/changes.py. A target is a
// list of sources with weights, {where, role, head, weight}; a change gives each role a target and
// the rest of the rows another, {targets: {role: target}, rest: target}, or replaces what the head
// carries, {carried: "mean"}. paint.js makes attention of them.

const CHANGE = /^(\d{1,9})\.(\d{1,9})(?::([^=]+))?=(.+)$/;
const ROLE = /^([^\W\d_](?:[\w '-]*[^\W\d_])?)(?: (\d+)(?:\.(\d+))?)?$/;
const NUMBERED = ["key", "value", "decoy key", "decoy value"];

const only = (where, role = null, head = null) => [{ where, role, head, weight: 1 }];
const WORDS = {
  uniform: only("uniform"),
  itself: only("itself"),
  previous: only("previous"),
};
const POSITION = "position"; // the head's mean attention on other examples, by position
const AS_IN_MODEL = only("model");
const TOLD = [...Object.keys(WORDS), POSITION].join(", ");

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
    const word = what === POSITION ? only(POSITION, null, [layer, head]) : own(WORDS, what);
    const asked = { text, what, word, roles };
    changes.set(key, reader === null ? ofHead(asked) : withRow(asked, changes.get(key), reader));
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

const own = (its, name) => (Object.hasOwn(its, name) ? its[name] : null);

function ofHead({ text, what, word, roles }) {
  if (what === "mean" || what === "resample") return { carried: what };
  if (word) return { targets: {}, rest: word };
  const [paths, rest = "", more] = what.split("/");
  if (!paths.includes(">") || more !== undefined || !["", "uniform", "itself"].includes(rest)) {
    throw new Error(
      `the change "${text.slice(0, 100)}" is not understood; WHAT is ${TOLD}, mean, ` +
        'resample, or paths like "value 0>query" with "/itself" for the other rows if not uniform',
    );
  }
  const targets = {};
  for (const path of paths.split(",")) {
    const [source, reader] = pathOf(path, roles);
    if (Object.hasOwn(targets, reader)) throw new Error(`a pattern gives one role two targets: ${what}`);
    targets[reader] = only("own", source);
  }
  return { targets, rest: WORDS[rest || "uniform"] };
}

function withRow(asked, before, reader) {
  if (before?.carried) {
    throw new Error(
      `the change "${asked.text.slice(0, 100)}" is of one row; what the head carries is replaced already`,
    );
  }
  const { targets, rest } = before ?? { targets: {}, rest: AS_IN_MODEL };
  return { targets: { ...targets, [reader]: asked.word ?? ofRow(asked, reader) }, rest };
}

function ofRow({ text, what, roles }, reader) {
  if (!what.includes(">") && !ROLE.test(what.trim())) {
    throw new Error(
      `the change "${text.slice(0, 100)}" is not understood; WHAT of one row is ` +
        `${TOLD}, or a role that it looks at`,
    );
  }
  const [source, named] = what.includes(">") ? pathOf(what, roles) : [roleOf(what, roles), reader];
  if (named !== reader) {
    throw new Error(`the change "${text.slice(0, 100)}" is of the row ${reader}, and names ${named}`);
  }
  return only("own", source);
}

/** Source and destination of one path. */
function pathOf(text, roles) {
  const at = text.indexOf(">");
  return [text.slice(0, at), text.slice(at + 1)].map((each) => roleOf(each, roles));
}
