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
"""The width and height of one map, in inches."""
USED, UNUSED = "#cc3311", "#444444"
COLOURS = "Blues"
PER_ROW = 4
"""Layers in a row of the figure, for a model with one head in each layer."""


def role_maps_figure(maps: RoleMaps, used: Collection[tuple[int, int]] = ()) -> Figure:
    """A map per head: rows read, columns are read, of the own chain and (right) of others.

    Heads in `used` (those of a circuit) have a red title.
    """
    names = [short_role(role) for role in maps.roles]
    figure, panels = _panels(maps.own.shape[0], maps.own.shape[1], (1.6 * CELL, CELL))
    for head, axes in panels.items():
        both = np.concatenate((maps.own[head], maps.others[head]), axis=1)
        _map(axes, both, names)
        axes.axvline(len(names) - 0.5, color="#999999", linewidth=0.8)
        axes.title.set_color(USED if head in used else UNUSED)
    figure.suptitle(
        "attention from role (row) to role (column): own chain left, other chains right", fontsize=9
    )
    return figure


def example_figure(
    attention: Float[np.ndarray, "layer head query key"] | list[object], names: list[str]
) -> Figure:
    """One example, position by position, for every head."""
    attention = np.asarray(attention)
    figure, panels = _panels(len(attention), attention.shape[1], (1.2 * CELL, 1.2 * CELL))
    for head, axes in panels.items():
        _map(axes, attention[head], names)
    return figure


def _panels(
    layers: int, heads: int, size: tuple[float, float]
) -> tuple[Figure, dict[tuple[int, int], Axes]]:
    """A figure with a titled panel per head: a row per layer, or more layers of one head."""
    columns = heads if heads > 1 else min(PER_ROW, layers)
    rows = math.ceil(layers * heads / columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.6), layout="constrained")
    panels = {}
    for number, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if number >= layers * heads:
            axes.set_axis_off()
            continue
        head = divmod(number, heads)
        axes.set_title(f"{head[0]}.{head[1]}", fontsize=8, pad=2)
        panels[head] = axes
    return figure, panels


def _map(axes: Axes, values: Float[np.ndarray, "row column"], names: list[str]) -> None:
    axes.imshow(values, cmap=COLOURS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    repeats = values.shape[1] // len(names)
    axes.set_xticks(range(values.shape[1]), names * repeats, fontsize=4.5, rotation=90)
    spec = axes.get_subplotspec()
    first = spec is not None and spec.is_first_col()
    axes.set_yticks(range(len(names)), names if first else [""] * len(names), fontsize=5)
    axes.tick_params(length=0, pad=1)
    axes.spines[:].set_linewidth(0.4)
