"""Attention as pictures: every head's role map (the paper's appendix C), or one example."""

import math
from collections.abc import Collection

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopscope.circuits import RoleMaps
from hopscope.report.depth import short_role

CELL = 1.75
"""Inches per map."""
USED, UNUSED = "#cc3311", "#444444"
COLOURS = "Blues"
PER_ROW = 6


def role_maps_figure(maps: RoleMaps, used: Collection[tuple[int, int]] = ()) -> Figure:
    """A map per head: rows read, columns are read, of the own chain and (right) of others.

    Heads in `used` (those of a circuit) have a red title.
    """
    layers, heads = maps.own.shape[:2]
    columns = heads if heads > 1 else min(PER_ROW, layers)
    rows = math.ceil(layers * heads / columns)
    figure = Figure(figsize=(CELL * 1.6 * columns, CELL * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    names = [short_role(role) for role in maps.roles]
    for number, axes in enumerate(grid.flat):
        if number >= layers * heads:
            axes.set_axis_off()
            continue
        head = (number // heads, number % heads)
        both = np.concatenate((maps.own[head].numpy(), maps.others[head].numpy()), axis=1)
        _map(axes, both, names, first_column=number % columns == 0)
        axes.axvline(len(names) - 0.5, color="#999999", linewidth=0.8)
        colour = USED if head in used else UNUSED
        axes.set_title(f"{head[0]}.{head[1]}", fontsize=8, color=colour, pad=2)
    figure.suptitle(
        "attention from role (row) to role (column): own chain left, other chains right", fontsize=9
    )
    return figure


def example_figure(
    attention: Float[np.ndarray, "layer head query key"] | list[object], names: list[str]
) -> Figure:
    """One example, position by position, for every head."""
    attention = np.asarray(attention)
    layers, heads = attention.shape[:2]
    columns = heads if heads > 1 else min(PER_ROW, layers)
    rows = math.ceil(layers * heads / columns)
    figure = Figure(figsize=(CELL * 1.2 * columns, CELL * 1.2 * rows), layout="constrained")
    for number, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if number >= layers * heads:
            axes.set_axis_off()
            continue
        layer, head = divmod(number, heads)
        _map(axes, attention[layer, head], names, first_column=number % columns == 0)
        axes.set_title(f"{layer}.{head}", fontsize=8, pad=2)
    return figure


def _map(
    axes: Axes, values: Float[np.ndarray, "row column"], names: list[str], first_column: bool
) -> None:
    axes.imshow(values, cmap=COLOURS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    repeats = values.shape[1] // len(names)
    axes.set_xticks(range(values.shape[1]), names * repeats, fontsize=4.5, rotation=90)
    axes.set_yticks(range(len(names)), names if first_column else [""] * len(names), fontsize=5)
    axes.tick_params(length=0, pad=1)
    axes.spines[:].set_linewidth(0.4)
