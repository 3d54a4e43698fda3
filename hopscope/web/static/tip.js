// The tooltip of what is pointed at.

import { fill, h, zoom } from "./dom.js";

export function tipOf(state) {
  const element = h("div", { class: "tip", role: "tooltip", hidden: true });
  let shown = null; // the target, and the function that gives its lines
  const hide = () => {
    shown = null;
    element.hidden = true;
  };
  const write = () =>
    fill(
      element,
      shown.lines().map(([name, value], n) =>
        h(
          "p",
          { class: n ? (value === undefined ? "last" : "") : "first" },
          h("span", {}, name),
          value === undefined ? null : h("b", {}, value),
        ),
      ),
    );
  /** Update or hide the tooltip after a redraw, which sends no pointer events. */
  const check = () => {
    if (!shown) return;
    if (shown.target.checkVisibility()) return write();
    state.set({ point: null }, "none");
    hide();
  };
  return {
    element,
    hide,
    check,
    /** Show the lines from `lines()` next to the target. */
    show(target, lines) {
      shown = { target, lines };
      write();
      element.hidden = false;
      const at = target.getBoundingClientRect();
      const { width, height } = element.getBoundingClientRect();
      const left = Math.min(
        innerWidth - width - 8,
        Math.max(8, at.right + 12 + width > innerWidth ? at.left - width - 12 : at.right + 12),
      );
      const top = Math.min(innerHeight - height - 8, Math.max(8, at.top - 12));
      element.style.left = `${left / zoom()}px`;
      element.style.top = `${top / zoom()}px`;
    },
    /** Start watching; called after all panes, so that the check runs after they have drawn. */
    follow() {
      state.watch("about maps step off pane", check);
      state.watch("run", hide);
    },
  };
}
