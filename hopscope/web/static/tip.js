// What is told beside something that is pointed at.

import { fill, h } from "./dom.js";

export function tipOf() {
  const element = h("div", { class: "tip", role: "tooltip", hidden: true });
  return {
    element,
    show(target, lines) {
      fill(
        element,
        lines.map(([name, value], n) =>
          h(
            "p",
            { class: n ? (value === undefined ? "last" : "") : "first" },
            h("span", {}, name),
            value === undefined ? null : h("b", {}, value),
          ),
        ),
      );
      element.hidden = false;
      const at = target.getBoundingClientRect();
      const { width, height } = element.getBoundingClientRect();
      const left = Math.min(
        innerWidth - width - 8,
        Math.max(8, at.right + 12 + width > innerWidth ? at.left - width - 12 : at.right + 12),
      );
      element.style.left = `${left}px`;
      element.style.top = `${Math.min(innerHeight - height - 8, Math.max(8, at.top - 12))}px`;
    },
    hide() {
      element.hidden = true;
    },
  };
}
