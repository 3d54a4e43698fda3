"""The HTML of a result in a notebook (figures with captions, and tables), and a result's figure.

`hopscope.display` calls this module when a result is shown; only then a drawing library is loaded.
"""

from html import escape
from pathlib import Path
from typing import Any

from hopscope.configs.kinds import KINDS, fetched
from hopscope.errors import ConfigError, HopscopeError
from hopscope.plots.look import DARK, LIGHT, Picture, looking
from hopscope.plots.page import figure_html, list_html, more_html, prose_html, table_html
from hopscope.plots.piece import SHOWN, Piece, entry_of, of_plots, pieces_of
from hopscope.plots.saving import HUE, save_figure, theme

MOST = 20
"""Largest number of rows of a table that are shown; the others are only counted."""
LIGHTS = ':is([data-jp-theme-light="true"], [data-theme="light"], .vscode-light) .hopscope'
DARKS = ':is([data-jp-theme-light="false"], [data-theme="dark"], .vscode-dark) .hopscope'
"""Selectors for the theme that was chosen in a notebook or a page of documentation."""
SHEET = f"""
.hopscope {{ overflow-x: auto; line-height: 1.5 }}
.hopscope figure {{ margin: .5rem 0 }} .hopscope svg {{ max-width: 100%; height: auto }}
.hopscope figcaption, .hopscope .dim {{ opacity: .75; max-width: 44rem }}
.hopscope td, .hopscope th {{ text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0 }}
@media (prefers-color-scheme: dark) {{
  .hopscope {{ {theme(DARK)} }} .hopscope image {{ {HUE} }}
}}
{LIGHTS} {{ {theme(LIGHT)} }} {LIGHTS} image {{ filter: none }}
{DARKS} {{ {theme(DARK)} }} {DARKS} image {{ {HUE} }}
"""
"""The style sheet of results in notebooks; a notebook's theme has priority over the browser's."""


def html(result: object) -> str:
    """Return the HTML of a result; if it cannot be drawn, the reason and the result as text."""
    view, draw = entry_of(result)
    try:
        parts = [*map(_piece_html, pieces_of(result))]
        if isinstance(result, Picture):
            parts = [figure_html(result)]
        elif draw and view != "pieces:run":  # the piece of a run has its own figure
            parts.insert(0, figure_html(of_plots(draw)(result)))
    except ModuleNotFoundError as error:
        parts = _as_text(result, f"{error.name} is not installed: pip install {error.name}")
    except HopscopeError as error:
        parts = _as_text(result, str(error))
    return f'<div class="hopscope"><style>{SHEET}</style>{"".join(parts)}</div>'


def _piece_html(piece: Piece) -> str:
    """Return a table with texts below it as HTML, folded if it has a title."""
    body = (
        list_html(piece.lines)
        if len(piece.lines) > 1
        else "".join(f"<p>{prose_html(line)}</p>" for line in piece.lines)
    )
    if piece.rows:
        left = len(piece.rows) - MOST
        more = f'<p class="dim">and {left:,} more</p>' if left > 0 and not piece.title else ""
        rows = piece.rows if piece.title else piece.rows[:MOST]
        body = table_html(piece.columns, rows) + more + body
    figure = figure_html(piece.figure()) if piece.figure else ""
    return figure + (more_html(piece.title, body) if piece.title else body)


def picture(result: object, path: Path | str | None = None, width: float | None = None) -> Picture:
    """Draw the figure of a result (`width` in inches), and save it if a path is given.

    Raises ConfigError for results without a single figure.
    """
    _, draw = entry_of(result)
    if draw is None:
        known = ", ".join(sorted(name.partition(":")[2] for name, (_, its) in SHOWN.items() if its))
        raise ConfigError(
            f"there is no single figure of a {type(result).__name__}; there is one of each of "
            f"{known}"
        )
    with looking(width):
        figure: Picture = of_plots(draw)(result)
    if path is not None:
        save_figure(figure, path)
    return figure


def figure_of(run: Any) -> Picture:
    """Draw the figure of a run; raises ConfigError if its kind has none."""
    draw = KINDS[run.recipe.kind].figure
    if not draw:
        raise ConfigError(f"there is no figure of a run of kind {run.recipe.kind}")
    figure: Picture = fetched(draw)(run)
    return figure


def _as_text(result: object, why: str) -> list[str]:
    return [f'<p class="dim">{escape(why)}</p>', f"<pre>{escape(str(result))}</pre>"]
