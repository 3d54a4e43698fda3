// The frame of every pane: title, tools, menu, and the commands that give its numbers.

import { able, announce, button, cells, fill, h, icon, mark, region, table, write } from "./dom.js";
import { ink } from "./colours.js";
import { MEANING } from "./explained.js";
import { csv, handOut, png, standalone } from "./save.js";

/**
 * A pane. `drawing()` returns an SVG for files, `rows()` its numbers as records, `command()` the
 * commands that give them, as {shell, python}. `fits(about)` returns whether a run has this pane.
 */
export class Pane {
  fits = (about) => Boolean(about.task);
  columns = []; // of the numbers of this run, as long as there are none

  constructor(state, name, title, made = {}) {
    Object.assign(this, { state, name, title, ...made });
    this.hinted = h("p", {});
    this.tools = h("div", { class: "tools" });
    this.body = h("div", { class: "body" });
    this.numbers = region("behind", `${title}: numbers`);
    this.numbers.hidden = true;
    this.shell = line("$", "command", "copy");
    this.python = line(">>>", "Python", "copy Python");
    this.foot = h("div", { class: "foot" }, this.shell.element, this.python.element);
    this.full = icon("⤢", `Maximise ${title}`, () => this.maximise(), {
      title: "Maximise (f)",
      "aria-pressed": "false",
    });
    const meaning = MEANING[name] ? h("p", { class: "meaning", hidden: true }, MEANING[name]) : null;
    const explain = meaning
      ? icon("?", `What is this? ${title}`, (event) => this.explain(meaning, event.currentTarget), {
          class: "icon explain",
          title: "What is this?",
          "aria-expanded": "false",
        })
      : null;
    this.watch("rested", () => this.showCommands());
    this.watch("about", () => {
      this.columns = [];
    });
    const near = () => {
      state.near = name;
    };
    this.element = h(
      "section",
      {
        class: `pane ${name}`,
        id: `pane-${name}`,
        "aria-labelledby": `title-${name}`,
        data: { pane: name },
        on: { pointerenter: near, focusin: near },
      },
      h(
        "header",
        {},
        h("h2", { id: `title-${name}` }, title),
        explain,
        h("div", { class: "hint" }, this.hinted),
        this.tools,
        this.menu(),
        this.full,
      ),
      meaning,
      this.body,
      this.numbers,
      this.foot,
    );
  }

  /** Does the current run have this pane? */
  get present() {
    return Boolean(this.state.about) && this.fits(this.state.about);
  }

  /** Call `run(keys)` when one of the keys changed, as long as the run has this pane. */
  watch(keys, run) {
    this.state.watch(keys, (changed) => this.present && run(changed));
  }

  /** Like `watch`, for drawing: the pane's numbers and texts are updated after it. */
  draws(keys, draw) {
    this.watch(keys, (changed) => this.redraw(() => draw(changed)));
  }

  /** Draw, too, when this place of the drawing has another width than it was drawn in (`room`). */
  fills(place, draw) {
    this.place = place;
    new ResizeObserver(() => {
      if (this.present && place.clientWidth !== this.width) this.redraw(draw);
    }).observe(place);
  }

  /** How wide the place is, for what draws in it now: another width draws it again. To ask makes the
   *  browser lay the page out: not while one scrubs. */
  get room() {
    this.width = this.place.clientWidth;
    return this.width;
  }

  redraw(draw) {
    draw();
    this.refreshNumbers();
  }

  showCommands() {
    const { shell = "", python = "" } = this.command?.() ?? {};
    this.shell.say(shell);
    this.python.say(python);
  }

  menu() {
    const pictures = this.drawing ? [["SVG", () => this.saveSvg()], ["PNG", () => this.savePng()]] : [];
    const numbers = this.rows ? [["CSV", () => this.saveCsv()], ["Table", () => this.showNumbers()]] : [];
    if (!this.drawing && !this.rows) return null;
    const close = () => {
      this.more.open = false;
      this.more.firstChild.focus();
    };
    const item = ([text, run]) =>
      button(text, () => {
        run();
        if (this.more.contains(document.activeElement)) close();
        else this.more.open = false; // the table has the keyboard
      });
    const drawn = pictures.map(item);
    const keydown = (event) => {
      if (event.key !== "Escape" || !this.more.open) return;
      event.stopPropagation();
      close();
    };
    const focusout = ({ relatedTarget }) => {
      if (!this.more.contains(relatedTarget)) this.more.open = false;
    };
    // Before anything is measured there is no picture to save.
    const toggle = () => {
      if (this.more.open) for (const its of drawn) able(its, this.drawing());
    };
    this.more = h(
      "details",
      { class: "menu", on: { keydown, focusout, toggle } },
      h(
        "summary",
        {
          class: "icon",
          title: "Save as a file, or show as a table",
          "aria-label": `Save ${this.title}, or show its numbers`,
        },
        "⤓",
      ),
      h("div", {}, drawn, numbers.map(item)),
    );
    return this.more;
  }

  explain(meaning, pressed) {
    meaning.hidden = !meaning.hidden;
    pressed.setAttribute("aria-expanded", String(!meaning.hidden));
  }

  hint(text) {
    write(this.hinted, text);
    mark(this.hinted, { title: text }); // where it is cut
  }

  get file() {
    return `${(this.state.about?.name ?? "hopscope").replaceAll("/", "-")}-${this.name}`;
  }

  saveSvg() {
    handOut(`${this.file}.svg`, standalone(this.shown(), ink("--paper")), "image/svg+xml");
  }

  async savePng() {
    handOut(`${this.file}.png`, await png(standalone(this.shown(), ink("--paper"))), "image/png");
  }

  /** A drawing must be on the page for its styles to be known. */
  shown() {
    const drawn = this.drawing();
    if (!drawn.isConnected) {
      const place = h("div", { class: "offstage", "aria-hidden": "true" }, drawn);
      this.element.append(place);
      setTimeout(() => place.remove());
    }
    return drawn;
  }

  saveCsv() {
    handOut(`${this.file}.csv`, csv(...this.tabled()), "text/csv");
  }

  /** The columns and rows of the numbers; without numbers, the last columns of this run. */
  tabled() {
    const [columns, rows] = cells(this.rows());
    if (rows.length) this.columns = columns;
    return [this.columns, rows];
  }

  showNumbers() {
    this.numbers.hidden = !this.numbers.hidden;
    this.refreshNumbers();
    if (!this.numbers.hidden) this.numbers.focus();
  }

  /** Keep an open table with what is drawn. */
  refreshNumbers() {
    if (this.numbers.hidden) return;
    fill(this.numbers, table(...this.tabled(), this.title));
  }

  maximise() {
    this.state.set({ pane: this.state.pane === this.name ? "" : this.name });
  }
}

/** A line under the pane, with what copies it. */
function line(sign, what, copy) {
  let text = "";
  const code = h("code");
  const copied = async (event) => {
    const made = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      announce(`${what} copied`);
      made.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(made.parentElement.querySelector("code"));
      made.textContent = "selected";
    }
    setTimeout(() => {
      made.textContent = copy;
    }, 1200);
  };
  const element = h(
    "div",
    { class: what === "Python" ? "line python" : "line", hidden: true },
    h("span", { "aria-hidden": "true" }, sign),
    code,
    button(copy, copied, { class: "copy", "aria-label": `Copy the ${what}` }),
  );
  return {
    element,
    say(its) {
      if (its === text) return;
      text = its;
      element.hidden = !text;
      code.title = text;
      code.textContent = text.replaceAll("\n", "; ");
    },
  };
}
