"""The flags of every command that draws; whether its figures can be written; and that they are,
with their numbers.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.cli.arguments import refuse_unused
from hopscope.cli.output import say
from hopscope.errors import ConfigError
from hopscope.report.formats import Columns, Style, check_format
from hopscope.store.files import check_files, write_bytes

if TYPE_CHECKING:
    from hopscope.report.look import Picture

REPORTS = Path("reports")
"""The folder of figures and pages that are not said to go elsewhere."""
DOTS = range(50, 1201)
"""Dots per inch that a figure may have."""


@dataclass(frozen=True, kw_only=True)
class FigureArguments:
    """How figures look."""

    style: Style = "paper"
    """Of figures: paper (on white, to be printed), dark, or page: SVG that follows its reader's
    light or dark."""
    columns: Columns | None = None
    """Of figures: as wide as one column of a paper with two (3.35 inches) or as both (6.9); unset:
    as each is best."""
    dpi: int = 300
    """Of figures: dots per inch of PNG, and of maps inside SVG and PDF."""


def figure_path(figure: Path | None, name: str, *, alone: bool) -> Path | None:
    """Where a figure goes: where `--figure` says, else into reports, unless JSON is to stand
    alone.
    """
    return figure or (None if alone else REPORTS / f"{name}.svg")


def check_figures(chosen: FigureArguments, *paths: Path | None) -> None:
    """Refuse files for figures whose format is unknown, or that cannot be written, and a look for
    none: asked before anything is computed for them.
    """
    if paths and not any(paths):
        names = (each.name for each in fields(FigureArguments))
        refuse_unused(chosen, names, "where no figure is drawn")
    if chosen.dpi not in DOTS:
        raise ConfigError(f"--dpi is {chosen.dpi}; expected {DOTS[0]} to {DOTS[-1]}")
    for path in filter(None, paths):
        check_format(path, chosen.style)
    check_files(*paths)


def draw(
    chosen: FigureArguments,
    path: Path,
    make: Callable[[], "Picture"],
    tell: Callable[[object], None] = say,
) -> None:
    """Draw a figure as it is to look, write it, and tell where it is and what it shows."""
    from hopscope.report.look import Look, looking
    from hopscope.report.saving import save_figure

    with looking(Look(chosen.style, chosen.columns, chosen.dpi)):
        figure = make()
    tell(f"figure: {save_figure(figure, path)}")
    tell(figure.caption)


def write_numbers(content: object, path: Path | None, tell: Callable[[object], None]) -> None:
    """Keep in a file what a figure shows, if one is named."""
    if path is not None:
        write_bytes(path, json.dumps(content).encode())
        tell(f"numbers: {path}")
