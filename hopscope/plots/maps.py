"""Figures of attention: every head's role map (the paper's appendix C), or one example."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from hopscope.circuits import RoleMaps
from hopscope.circuits.pattern import Head
from hopscope.plots.look import (
    COLOURS,
    DIM,
    LETTER,
    SMALL,
    Picture,
    drawn,
    figure_width,
    picture,
    shade,
)
from hopscope.plots.symbols import role_legend, short_role

LINE = 1.08 * SMALL / 72
"""Height of a label, in inches."""
BAR = 1.05
"""Inches for the colour bar at the right, and the name of the axis at the left."""
PANEL, BEST = 0.5, 1.25
"""Least width of a panel, and least width if several layers share a row, in inches."""
TITLE = 0.2
"""Inches above a panel."""
SPARSE = 4
"""Labels are left out if fewer than every fourth one fits."""
MOST, ROWS = 64, 8
"""The most heads that are drawn, and in how many rows if there are more."""
USED = COLOURS[6]


@drawn
def role_maps_figure(maps: RoleMaps, used: Collection[Head] = (), of: str = "role maps") -> Picture:
    """Draw a map per head: destinations (rows) by sources (columns) of the own chain and of others.

    Heads in `used` (those of a circuit) are marked; `of` is the name of the figure.
    """
    names = [short_role(role) for role in maps.roles]
    more = bool(np.nan_to_num(maps.others).any())
    """There are other chains."""
    sides = ": left of the line those of the own chain, right of it those of all other chains"
    caption = (
        "Mean attention of each head (layer.head) from a role (row) to the same roles (column)"
        f"{sides * more}."
        f"{' Star: heads of the circuit.' * bool(used)}"
        f"{' Grey: roles that never occur.' * bool(np.isnan(maps.own).any())} "
        f"{role_legend(maps.roles)}"
    )
    both = np.concatenate((maps.own, maps.others), axis=-1) if more else maps.own
    heads, arranged = _chosen(both, used)
    sources = names * (1 + more)
    grid = Grid.of(*arranged, len(names), len(sources), max(map(len, names)))
    figure, panels = _panels((of, caption + _left_out(both, heads, used)), grid, heads)
    for head, axes in panels.items():
        _map(axes, both[head], (names, sources), grid)
        if more:
            axes.axvline(len(names) - 0.5, color=DIM, linewidth=0.8)
        if head in used:
            axes.set_title(f"{axes.get_title()}*", color=USED, fontweight="bold", pad=2)
    star = "; *: head of the circuit" if used else ""
    chains = ": own chain (left of the line), other chains (right)" if more else ""
    figure.supxlabel(f"source{chains}{star}")
    figure.supylabel("destination")
    _scale(figure, panels, arranged[0])
    return figure


@drawn
def example_figure(
    attention: Float[np.ndarray, "layer head query key"] | list[object],
    names: Sequence[str],
    of: str = "one example",
) -> Picture:
    """One example, position by position, for every head."""
    shown = np.asarray(attention, dtype=float)
    queries, keys = shown.shape[2:]
    caption = (
        "Attention of each head (layer.head) in one example, from a position (row) to a position "
        "(column)."
    )
    if not np.triu(shown, k=1).any():  # causal: later positions are masked, not 0
        shown = np.where(np.tri(queries, keys, dtype=bool), shown, np.nan)
        caption += " Grey: positions that come later, which it cannot attend to."
    heads, arranged = _chosen(shown)
    grid = Grid.of(*arranged, queries, keys, max(map(len, names)))
    figure, panels = _panels((of, caption + _left_out(shown, heads)), grid, heads)
    for head, axes in panels.items():
        _map(axes, shown[head], (names, names), grid)
    figure.supxlabel("source")
    figure.supylabel("destination")
    _scale(figure, panels, arranged[0])
    return figure


def _chosen(
    every: Float[np.ndarray, "layer head row column"], used: Collection[Head] = ()
) -> tuple[list[Head], tuple[int, int]]:
    """The heads that are drawn, and their number of rows and of heads in each. If there are too
    many: those in `used`, then those whose maps differ most from the median over all heads.
    """
    heads = [*np.ndindex(every.shape[:2])]
    if len(heads) <= MOST:
        return heads, every.shape[:2]
    flat = np.nan_to_num(every.reshape(len(heads), -1))
    off = np.abs(flat - np.median(flat, axis=0)).max(1)
    first = sorted(range(len(heads)), key=lambda n: (heads[n] not in used, -off[n]))
    return [heads[n] for n in sorted(first[:MOST])], (ROWS, MOST // ROWS)


def _left_out(
    every: Float[np.ndarray, "layer head row column"],
    heads: list[Head],
    used: Collection[Head] = (),
) -> str:
    """What the caption says about heads that are not drawn."""
    count = every.shape[0] * every.shape[1]
    if count == len(heads):
        return ""
    first = "heads of the circuit first, then " if used else ""
    return (
        f" Only {len(heads)} of {count:,} heads are drawn: {first}those that differ most from the "
        "median head."
    )


@dataclass(frozen=True)
class Grid:
    """The arrangement of the panels of all heads: a row has one layer, a part of it, or several.

    Layers whose heads cannot be divided into long rows follow each other within rows.
    """

    panels: int
    across: int
    down: int
    pitch: tuple[float, float]
    """Height of a map's row, and width of its column, in inches."""
    size: tuple[float, float]
    """Inches: height of a panel with its title, and of the labels below the last panel."""

    @classmethod
    def of(cls, layers: int, heads: int, rows: int, columns: int, letters: int) -> "Grid":
        """Choose the grid for maps of this many rows and columns, with labels of `letters`."""
        room = figure_width(2) - BAR - LETTER * letters
        most = max(1, int(room / PANEL))
        of_layer = [count for count in range(1, heads + 1) if heads % count == 0 and count <= most]
        part = of_layer[-1] if 2 * of_layer[-1] >= most else min(most, heads)
        across = heads * min(layers, int(room / BEST) // heads) or part
        wide = room / across - 0.05
        high = min(max(wide * rows / columns, PANEL, LINE * rows), 1.2 * wide)
        return cls(
            layers * heads,
            across,
            -(-layers * heads // across),
            (high / rows, wide / columns),
            (high + TITLE, LETTER * letters),
        )


def _panels(
    said: tuple[str, str], grid: Grid, heads: Sequence[Head]
) -> tuple[Picture, dict[Head, Axes]]:
    """A figure of this title and caption, with a titled panel per head."""
    figure = picture(*said, grid.size[0] * grid.down + grid.size[1] + 0.3, columns=2)
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)  # type: ignore[union-attr, call-arg]
    panels = {}
    every = figure.subplots(grid.down, grid.across, squeeze=False).flat
    for axes in every[grid.panels :]:
        axes.remove()
    for head, axes in zip(heads, every[: grid.panels], strict=True):
        axes.set_title(f"{head[0]}.{head[1]}", pad=2)
        panels[head] = axes
    return figure, panels


def _map(
    axes: Axes,
    values: Float[np.ndarray, "row column"],
    names: tuple[Sequence[str], Sequence[str]],
    grid: Grid,
) -> None:
    shade(axes, values, interpolation="nearest")
    place = axes.get_subplotspec()
    assert place is not None
    lowest = place.num1 + grid.across >= grid.panels  # no panel below
    sides = (axes.yaxis, place.is_first_col()), (axes.xaxis, lowest)
    for (axis, shown), labels, pitch in zip(sides, names, grid.pitch, strict=True):
        step = int(np.ceil(LINE / pitch))
        half = len(labels) // 2
        twice = labels[:half] == labels[half:]  # own chain and other chains have the same labels
        spots = range(0, half - step + 1, step) if twice else range(0, len(labels), step)
        named = shown and step <= SPARSE
        at = [*spots, *(half + n for n in spots if twice)] if named else []
        axis.set_ticks(at, [labels[number] for number in at])
    axes.tick_params(length=0, pad=1.5)
    axes.tick_params(axis="x", rotation=90)
    axes.spines[:].set(visible=True, linewidth=0.4)


def _scale(figure: Picture, panels: dict[Head, Axes], rows: int) -> None:
    """The colour bar of all panels."""
    every = list(panels.values())
    bar = figure.colorbar(every[0].images[0], ax=every, aspect=25, shrink=min(1, 2.2 / rows))
    bar.set_label("attention")
    bar.outline.set_linewidth(0.4)
