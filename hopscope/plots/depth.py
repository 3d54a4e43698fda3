"""Figures of depth theory: positions that share information, and a schedule of look-ups."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Arc

from hopscope.facts import FactGraph, Role, symbol_name
from hopscope.plots.look import (
    COLOURS,
    DIM,
    LETTER,
    SMALL,
    TEXT,
    Picture,
    drawn,
    figure_width,
    picture,
    rotation,
)
from hopscope.plots.symbols import role_legend, short_role
from hopscope.theory import Flow, Reading, flow

SYMBOL_COLOUR, CODE_COLOUR = COLOURS[:2]
EDGES = 0.4
"""Columns beside the first and the last position."""
UNIT = 0.45
"""Inches of one unit of the axis of heights."""
LINE = 1.3 * TEXT / 72
"""Width of a turned label, in inches."""
GRID_ROLES = 25
"""Largest number of columns of a diagram in the terminal."""


@drawn
def shared_information(graph: FactGraph) -> Picture:
    """Draw figures 3 and 8 of the paper: positions that share a piece before any layer."""
    start = flow(graph)
    pieces, roles = start.holdings[0], start.roles
    symbols = [symbol_name(*(held & set(graph.symbols))) for held in pieces]
    names = [*symbols, *map(short_role, roles)]
    pitch = figure_width(2) / (len(roles) + EDGES)
    turned = rotation(names, pitch)
    long = LETTER * max(map(len, names)) if turned else 0.0
    step = ceil(LINE / pitch) if turned else 1
    thinned = f" Labels: every {step} positions." if step > 1 else ""
    figure = picture(
        "what positions share before any layer",
        "Symbols (above) and roles (below) of one chain, in the order of the sequence. Arcs above "
        f"join equal symbols, arcs below positions with the same code.{thinned} "
        f"{role_legend(roles)}",
        2.1 + 2 * long,
        columns=2,
    )
    axes = figure.subplots()
    apart = long / UNIT
    for place, (role, held) in enumerate(zip(roles, pieces, strict=True)):
        if place % step == 0:
            middle: dict[str, Any] = {"ha": "center", "va": "center", "rotation": turned}
            axes.text(place, 0.05 + apart / 2, symbols[place], **middle)
            axes.text(place, -0.3 - apart / 2, short_role(role), fontsize=SMALL, color=DIM,
                      **middle)  # fmt: skip
        for earlier in range(place):
            for piece in pieces[earlier] & held:
                _arc(axes, (earlier, place), apart, above=piece in graph.symbols)
    axes.set(xlim=(-0.7, len(roles) - 0.3), ylim=(-1.9 - apart, 1.9 + apart))
    axes.set_axis_off()
    handles = [
        Line2D([], [], color=SYMBOL_COLOUR, label="the same symbol"),
        Line2D([], [], color=CODE_COLOUR, label="the same code"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def grid(found: Flow, readings: Sequence[Reading]) -> str:
    """Return a schedule as text: a column per role, a row per layer, the source in each cell."""
    used = {role for reading in readings for role in (reading.destination, reading.source)}
    columns = [role for role in found.roles if role in used]
    if len(columns) > GRID_ROLES:
        return "\n".join(str(reading) for reading in readings)
    cells: dict[tuple[int, Role], str] = {}
    for reading in readings:
        place = (reading.layer, reading.destination)
        cells[place] = "+".join(filter(None, (cells.get(place), short_role(reading.source))))
    width = max(len(text) for text in (*map(short_role, columns), *cells.values())) + 1
    head = "layer " + "".join(f"{short_role(role):>{width}}" for role in columns) + "   query knows"
    rows = [head]
    for layer in range(1, max(reading.layer for reading in readings) + 1):
        known = [s for s in found.graph.symbols if s in found.holdings[layer][-1]]
        line = "".join(f"{cells.get((layer, role), '·'):>{width}}" for role in columns)
        rows.append(f"{layer:>5} {line}   {_span(known)}")
    return "\n".join(rows)


def _arc(axes: Axes, ends: tuple[int, int], apart: float, above: bool) -> None:
    """Join two positions; `apart` is the height that turned labels need."""
    left, right = ends
    height = 0.9 + 0.5 * min(right - left, 6) ** 0.5
    angles = {"theta1": 0, "theta2": 180} if above else {"theta1": 180, "theta2": 360}
    centre = ((left + right) / 2, 0.25 + apart if above else -0.55 - apart)
    colour = SYMBOL_COLOUR if above else CODE_COLOUR
    axes.add_patch(Arc(centre, right - left, height, edgecolor=colour, linewidth=1.2, **angles))


def _span(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]}"
