"""A self-contained HTML page of sections, without network access or scripts.

Figures are inline SVG with a text for screen readers.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape

from hopscope import __version__
from hopscope.plots.look import DARK, Picture
from hopscope.plots.saving import HUE, svg, theme, themed

STYLE = (
    f"""
:root {{ color-scheme: light dark; --ink: #1c1c22; --dim: #5f6570; --paper: #fdfdfb; --line: #ddd }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e9e9ee; --dim: #a3abb8; --paper: #15181e; --line: #3a3a42; {theme(DARK)} }}
  figure image {{ {HUE} }}
}}
"""
    """
body { margin: 0 auto; max-width: 64rem; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 1rem 0 .25rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem }
p { max-width: 44rem } .dim, footer { color: var(--dim); font-size: .9rem }
figure { margin: 1rem 0; overflow-x: auto } figcaption { color: var(--dim); font-size: .9rem }
figure svg { max-width: 100%; height: auto; display: block; margin: auto }
.table { overflow-x: auto } table { border-collapse: collapse; font-size: .92rem }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top } th { color: var(--dim); font-weight: 500 }
code { font-size: .9em } ul { padding-left: 1.2rem }
"""
)


def page(title: str, subtitle: str, sections: Iterable[str], style: str = "") -> str:
    """Return the whole page; `style` is additional CSS."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>"
        f'<main><h1>{escape(title)}</h1><p class="dim">{escape(subtitle)}</p>{"".join(sections)}'
        f"</main><footer><p>hopscope {__version__}</p></footer></body></html>\n"
    )


def section_html(title: str, text: str, body: Iterable[str] = (), anchor: str = "") -> str:
    """Return a heading, a paragraph and the HTML that follows; `anchor` is the id for links."""
    start = f'<section id="{anchor}">' if anchor else "<section>"
    paragraph = f"<p>{prose_html(text)}</p>" if text else ""
    return f"{start}<h2>{escape(title)}</h2>{paragraph}{''.join(body)}</section>"


def prose_html(text: str) -> str:
    """Convert text to HTML, with text in backquotes as code.

    >>> prose_html("`a < b` & c")
    '<code>a &lt; b</code> &amp; c'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def figure_html(figure: Picture) -> str:
    """Return a figure as inline SVG with its caption; the page's CSS sets its colours."""
    text = svg(figure, "page")
    name = f"f{sha256(text.encode()).hexdigest()[:12]}"  # makes ids unique on the page
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", themed(text))
    said = escape(". ".join(filter(None, (figure.name, figure.caption))), quote=True)
    label = f'<svg role="img" aria-label="{said}"'
    title = f"<b>{escape(figure.name)}.</b> " if figure.name else ""
    caption = f"<figcaption>{title}{escape(figure.caption)}</figcaption>"
    shown = text.replace("<svg", label, 1)
    return f'<figure tabindex="0">{shown}{caption}</figure>'  # focusable, to scroll it by keys


def table_html(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table that scrolls sideways if it is too wide."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{prose_html(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="table" tabindex="0">{table}</div>'


def more_html(title: str, body: str) -> str:
    """Return HTML folded under a title; empty if `body` is empty."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>" if body else ""


def list_html(lines: Iterable[str]) -> str:
    """Return an HTML list of these lines, with text in backquotes as code; empty without lines."""
    items = "".join(f"<li>{prose_html(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
