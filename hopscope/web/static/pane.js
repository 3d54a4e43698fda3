// The frame of every pane: title, what can be done with it, and the command that gives its numbers.

import { announce, button, fill, h, table, write } from "./dom.js";
import { ink } from "./colours.js";
import { MEANING } from "./explained.js";
import { csv, handOut, png, standalone } from "./save.js";

/**
 * A pane. `drawing()` gives an SVG of what is seen, `rows()` its numbers as {columns, rows};
 * `command()` the lines that give them, as {shell, python}.
 */
export class Pane {
  constructor(state, name, title, made = {}) {
    Object.assign(this, { state, name, title, ...made });
    this.hinted = h("p", {});
    this.tools = h("div", { class: "tools" });
    this.body = h("div", { class: "body" });
    this.numbers = h("div", {
      class: "behind",
      hidden: true,
      tabindex: "0",
      role: "region",
      "aria-label": `${title}: numbers`,
    });
    this.shell = line("$", "command");
    this.python = line(">>>", "Python");
    this.foot = h("div", { class: "foot" }, this.shell.element, this.python.element);
    this.full = button("⤢", () => this.maximise(), {
      class: "icon",
      title: "Maximise (f)",
      "aria-label": `Maximise ${title}`,
      "aria-pressed": "false",
    });
    const meaning = MEANING[name] ? h("p", { class: "meaning", hidden: true }, MEANING[name]) : null;
    const explain = meaning
      ? button("?", (event) => this.explain(meaning, event.currentTarget), {
          class: "icon explain",
          title: "What is this?",
          "aria-label": `What is this? ${title}`,
          "aria-expanded": "false",
        })
      : null;
    this.element = h(
      "section",
      { class: `pane ${name}`, id: `pane-${name}`, "aria-labelledby": `title-${name}`, data: { pane: name } },
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
    this.element.addEventListener("pointerenter", () => {
      state.near = name;
    });
    this.element.addEventListener("focusin", () => {
      state.near = name;
    });
  }

  menu() {
    const items = [];
    if (this.drawing) items.push(["SVG", () => this.saveSvg()], ["PNG", () => this.savePng()]);
    if (this.rows) items.push(["CSV", () => this.saveCsv()], ["Table", () => this.showNumbers()]);
    if (!items.length) return null;
    const closed = (run) => () => {
      run();
      const inside = this.more.contains(document.activeElement); // and not in the table
      this.more.open = false;
      if (inside) this.more.firstChild.focus();
    };
    this.more = h(
      "details",
      {
        class: "menu",
        on: {
          keydown: (event) => {
            if (event.key === "Escape" && this.more.open) {
              event.stopPropagation();
              this.more.open = false;
              this.more.firstChild.focus();
            }
          },
          focusout: (event) => {
            if (!this.more.contains(event.relatedTarget)) this.more.open = false;
          },
        },
      },
      h(
        "summary",
        {
          class: "icon",
          title: "Save as a file, or show as a table",
          "aria-label": `Save ${this.title}, or show its numbers`,
        },
        "⤓",
      ),
      h(
        "div",
        {},
        items.map(([text, run]) => button(text, closed(run))),
      ),
    );
    return this.more;
  }

  explain(meaning, pressed) {
    meaning.hidden = !meaning.hidden;
    pressed.setAttribute("aria-expanded", String(!meaning.hidden));
  }

  hint(text) {
    write(this.hinted, text);
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
    const { columns, rows } = this.rows();
    handOut(`${this.file}.csv`, csv(columns, rows), "text/csv");
  }

  showNumbers() {
    this.numbers.hidden = !this.numbers.hidden;
    this.refreshNumbers();
    if (!this.numbers.hidden) this.numbers.focus();
  }

  /** Keep an open table with what is drawn. */
  refreshNumbers() {
    if (this.numbers.hidden) return;
    const { columns, rows } = this.rows();
    fill(this.numbers, table(columns, rows, this.title));
  }

  maximise() {
    this.state.set({ pane: this.state.pane === this.name ? "" : this.name });
  }

  /** The lines under the pane. */
  told(shell, python) {
    this.shell.say(shell ?? "");
    this.python.say(python ?? "");
  }
}

/** One of them, with what copies it. */
function line(sign, what) {
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
      made.textContent = what === "Python" ? "copy Python" : "copy";
    }, 1200);
  };
  const element = h(
    "div",
    { class: what === "Python" ? "line python" : "line", hidden: true },
    h("span", { "aria-hidden": "true" }, sign),
    code,
    button(what === "Python" ? "copy Python" : "copy", copied, {
      class: "copy",
      "aria-label": `Copy the ${what}`,
    }),
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
