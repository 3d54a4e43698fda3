// Helpers to make elements. Data enters the page only as text and attributes, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** Make an HTML element with properties and children (elements, text, lists of both; null is left
 *  out). */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** Make an SVG element. */
export function s(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

/** Make a text, a line and a rectangle of a drawing. */
export const label = (x, y, text, props = {}) => s("text", { x, y, ...props }, text);
export const rule = (x1, y1, x2, y2, props = {}) => s("line", { x1, y1, x2, y2, ...props });
export const box = (x, y, width, height, props = {}) => s("rect", { x, y, width, height, ...props });

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name === "style")
      for (const [key, its] of Object.entries(value)) element.style.setProperty(key, its);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

/** Flatten lists of children, and leave out null, undefined and false. */
function present(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Replace the children of an element. Children that are already there stay in the document,
 *  because an input loses the focus when it is moved. If the focused element is removed, its
 *  successor gets the focus. */
export function fill(element, ...children) {
  const held = document.activeElement;
  const place = element.contains(held) ? focusable(element).indexOf(held) : -1;
  refill(element, present(children));
  if (place >= 0 && document.activeElement !== held) {
    const to = element.contains(held) ? held : successor(element, held, place);
    to?.focus({ preventScroll: true });
  }
  return element;
}

/** All focusable elements within an element. */
function focusable(element) {
  return [...element.querySelectorAll("a[href], button, input, select, summary, [tabindex]")];
}

/** The successor of a removed element: the one with its key or name, else the one at its place,
 *  else the next one in the document. */
function successor(element, held, place) {
  const nameOf = (its) => its.dataset.key ?? its.getAttribute("aria-label") ?? its.textContent;
  const all = focusable(element);
  const same = all.find((its) => its.tagName === held.tagName && nameOf(its) === nameOf(held));
  const { DOCUMENT_POSITION_FOLLOWING: after } = Node;
  const comes = (its) => element.compareDocumentPosition(its) & after && its.checkVisibility();
  return same ?? all[place] ?? all.at(-1) ?? focusable(document).find(comes);
}

function refill(element, wanted) {
  const stay = new Set(wanted.filter((child) => child.parentNode === element));
  if (!stay.size) return element.replaceChildren(...wanted);
  for (const old of [...element.childNodes]) if (!stay.has(old)) old.remove();
  let next = element.firstChild;
  for (const child of wanted) {
    if (child === next) next = next.nextSibling;
    else element.insertBefore(child instanceof Node ? child : document.createTextNode(child), next);
  }
}

/** Set an element's text only if it differs, and reuse its text node, because writing causes
 *  layout. */
export function write(element, text) {
  if (element.textContent === text) return;
  const { childNodes: nodes } = element;
  if (nodes.length === 1 && nodes[0].nodeType === Node.TEXT_NODE) nodes[0].data = text;
  else element.textContent = text;
}

/** Set attributes only where they differ. */
export function mark(element, attributes) {
  for (const [name, value] of Object.entries(attributes))
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Make a button with a text; for `disabled` see `able`. */
export function button(text, run, { disabled, ...props } = {}) {
  const click = (event) => made.ariaDisabled !== "true" && run(event);
  const made = h("button", { type: "button", ...props, on: { click, ...props.on } }, text);
  able(made, !disabled);
  return made;
}

/** Make a button that shows a sign; screen readers say its label. */
export function icon(sign, label, run, props = {}) {
  return button(sign, run, { class: "icon", "aria-label": label, ...props });
}

/** Enable or disable a button. A disabled one stays focusable, so that the focus is not lost after
 *  the last "undo". */
export function able(made, yes) {
  if (yes) made.removeAttribute("aria-disabled");
  else mark(made, { "aria-disabled": true });
}

/** Make a select box; options are [value, text], or only a text. */
export function select(label, options, chosen, run) {
  const option = (its) => {
    const [value, text = value] = [its].flat();
    return h("option", { value, selected: String(value) === String(chosen) }, text);
  };
  const made = h("select", { "aria-label": label, on: { change: () => run(made.value) } }, options.map(option));
  return made;
}

/** Make an empty drawing with a description for screen readers. */
export function labelledSvg(name, width, height, label, props = {}) {
  return s("svg", { class: name, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, ...props });
}

/** Make a place that may scroll: the keyboard reaches it, and screen readers say its label. */
export function region(name, label, ...children) {
  return h("div", { class: name, tabindex: "0", role: "region", "aria-label": label }, children);
}

/** The columns and rows of records, as of a table. */
export const cells = (records) => [Object.keys(records[0] ?? {}), records.map(Object.values)];

/** Make a table of texts (or cells) with the numbers of a drawing. */
export function table(columns, rows, caption = "") {
  const made = (cell, n) => h(n ? "td" : "th", n ? {} : { scope: "row" }, String(cell));
  const line = (row) => h("tr", {}, row.map((cell, n) => (cell instanceof Node ? cell : made(cell, n))));
  return h(
    "table",
    { class: "numbers" },
    caption ? h("caption", {}, caption) : null,
    h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map(line)),
  );
}

/** Make a switch of several states, one of which is on; options are [value, text, title], or a
 *  text. */
export function choice(label, options, chosen, run) {
  const made = (its) => {
    const [value, text = value, title] = [its].flat();
    return button(text, () => run(value), { "aria-pressed": String(value === chosen), title });
  };
  return h("div", { class: "choice", role: "group", "aria-label": label }, options.map(made));
}

/** Event handlers that call `enter` and `leave` as the pointer or the focus comes and goes. */
export const hovered = (enter, leave) => ({ pointerenter: enter, pointerleave: leave, focus: enter, blur: leave });

/** Make a drawing act as a button: click, Enter and space call `press`; pointer and focus call
 *  `enter` and `leave`. The focus is on `tag`; the pointer may be on any of `elements`. */
export function switchable(tag, elements, { enter, leave, press }) {
  for (const element of elements) {
    element.addEventListener("pointerenter", enter);
    element.addEventListener("pointerleave", leave);
    element.addEventListener("click", (event) => {
      press();
      if (event.pointerType === "touch") leave();
      else enter();
    });
  }
  tag.addEventListener("focus", () => tag.matches(":focus-visible") && enter());
  tag.addEventListener("blur", leave);
  tag.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    press();
    enter();
  });
}

/** The zoom factor of the page, which is above 1 on large screens. */
export const zoom = () => document.getElementById("page")?.currentCSSZoom ?? 1;

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Roving focus: Tab goes to one of the items of an element, arrow keys move to the nearest item. */
export function roving(element, items) {
  const come = (to) => {
    for (const its of items()) its.setAttribute("tabindex", its === to ? "0" : "-1");
  };
  element.addEventListener("focusin", ({ target }) => items().includes(target) && come(target));
  element.addEventListener("keydown", (event) => {
    const [x, y] = WAYS[event.key] ?? [0, 0];
    if ((!x && !y) || !items().includes(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
    const middle = (its) => {
      const { left, top, width, height } = its.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    };
    const [left, top] = middle(event.target);
    const far = items().map((its) => {
      const [across, down] = [middle(its)[0] - left, middle(its)[1] - top];
      const ahead = x * across + y * down;
      return ahead > 1 ? ahead + 3 * Math.abs(y * across + x * down) : Infinity;
    });
    const nearest = Math.min(...far);
    if (nearest < Infinity) items()[far.indexOf(nearest)].focus();
  });
  return { come: () => items().some((its) => its.tabIndex === 0) || come(items()[0]) };
}

/** Say something to a screen reader, and nothing to anybody else. */
export function announce(text) {
  write(document.getElementById("said"), text);
}
