"""Pages that everybody can use: what the theme leaves to be said for those who do not see a page,
or use no mouse.
"""

import re
from typing import Any

CAPTION = re.compile(r'<p class="caption" role="heading">')
SCROLLS = re.compile(r'<pre>|<div class="(?:table-wrapper|hopscope)[^"]*">')
"""What may be wider than a narrow page."""
ASIDES = """
document.querySelector(".sidebar-drawer").ariaLabel = "All pages";
document.querySelector(".toc-drawer").ariaLabel = "This page";
"""
"""Two landmarks of one kind need names; the theme's templates have no place for them."""


def complete(_app: Any, _name: str, _template: str, context: Any, _tree: Any) -> None:
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = CAPTION.sub(
            '<p class="caption" role="heading" aria-level="2">', context["furo_navigation_tree"]
        )
    if "body" in context:  # the keys of the keyboard move what has the focus
        context["body"] = SCROLLS.sub(lambda tag: f'{tag[0][:-1]} tabindex="0">', context["body"])


def setup(app: Any) -> dict[str, bool]:
    app.add_js_file(None, body=ASIDES)
    app.connect("html-page-context", complete, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
