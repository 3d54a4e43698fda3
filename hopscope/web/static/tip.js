// What is told beside something that is pointed at, as long as it is there.

import { fill, h, zoom } from "./dom.js";

export function tipOf(state) {
  const element = h("div", { class: "tip", role: "tooltip", hidden: true });
  let shown = null; // what is pointed at, and what there is to say of it
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
  /** What was drawn anew under a pointer that rests is not left by it. */
  const check = () => {
    if (!shown) return;
    if (shown.target.checkVisibility()) return write();
    state.under = null;
    hide();
  };
  return {
    element,
    hide,
    check,
    /** Say what `lines()` gives beside the target. */
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
    /** Once all panes watch: what they draw anew is checked behind them. */
    follow() {
      state.watch("about maps step off pane", check);
      state.watch("run", hide);
    },
  };
}
