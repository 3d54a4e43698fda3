"""Figures of the symbols that are decodable at each role: layers upward, roles across, a colour for
each symbol, as in the paper's figure 5.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from hopscope.circuits.probe import Probe, ProbeHistory
from hopscope.errors import ConfigError
from hopscope.facts import Role, symbol_name
from hopscope.milestones import HALF
from hopscope.plots.look import (
    COLOURS,
    DIM,
    FAINT,
    LETTER,
    LINES,
    Picture,
    drawn,
    line_style,
    picture,
    rotation,
)
from hopscope.plots.symbols import role_legend, short_role
from hopscope.plots.words import probed_roles
from hopscope.shapes import Float

ROW = 0.3
"""Inches per layer."""
PANEL = 0.85
"""Inches per role of the course of a training."""
ONE_COLUMN = 8
"""Largest number of roles that fit into one column of a paper."""
BESIDE = 1.1
"""Inches for the names of layers."""
CELL = 0.84
"""Width and height of the area of bars, as a share of the cell."""
LEAST_SHARE = 0.03
"""A share below this is not drawn."""


@drawn
def probe_figure(found: Probe) -> Picture:
    """Draw a cell for every layer and role, with a bar for each symbol, as high as its share."""
    roles = _drawn_roles(found)
    figure = picture(
        "which symbols can be read at each role",
        "How much of each symbol of its own chain a linear map reads off at each role, after each "
        f"layer ({found.measure}; a bar as high as its cell: all of it). {role_legend(roles)}",
        ROW * (found.layers + 1) + 0.9,
        columns=1 if len(roles) <= ONE_COLUMN else 2,
    )
    axes = figure.subplots()
    colours = [colour_of(found.symbols, symbol) for symbol in found.symbols]
    for column, role in enumerate(roles):
        shares = found.stream.own[:, found.roles.index(role)]
        for layer, shares_here in enumerate(shares):
            _cell(axes, (column, layer), shares_here, colours)
    short = [short_role(role) for role in roles]
    room = (figure.get_figwidth() - BESIDE) / len(roles)
    axes.set_xticks(range(len(roles)), short, rotation=rotation(short, room))
    names = ["input", *(f"after layer {n}" for n in range(found.layers))]
    axes.set_yticks(range(found.layers + 1), names)
    axes.set(xlim=(-0.6, len(roles) - 0.4), ylim=(-0.6, found.layers + 0.6))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    handles = [
        Patch(color=colour, label=symbol_name(name))
        for name, colour in zip(found.symbols, colours, strict=True)
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(6, len(handles)),
        title=f"height of a bar: share that can be read ({found.measure})",
    )  # fmt: skip
    return figure


def _drawn_roles(found: Probe | ProbeHistory) -> list[Role]:
    """Return the roles to draw; raises ConfigError if there are none."""
    if roles := probed_roles(found):
        return roles
    raise ConfigError("no role of the probe occurs in a chain, so nothing can be drawn")


def colour_of(symbols: tuple[str, ...], symbol: str) -> str:
    """Return a symbol's colour: the first is grey, the others are as in the loss curves."""
    number = symbols.index(symbol)
    return DIM if number == 0 else COLOURS[(number - 1) % LINES]


def _cell(
    axes: Axes, at: tuple[int, int], shares: Float[np.ndarray, "symbol"], colours: list[str]
) -> None:
    column, layer = at
    left, low, width = column - CELL / 2, layer - CELL / 2, CELL / len(shares)
    axes.add_patch(Rectangle((left, low), CELL, CELL, facecolor=FAINT, alpha=0.4, linewidth=0))
    for number, share in enumerate(shares):
        if share > LEAST_SHARE:
            corner = (left + number * width, low)
            bar = Rectangle(
                corner, width, CELL * min(1.0, share), facecolor=colours[number], linewidth=0
            )
            axes.add_patch(bar)


@drawn
def history_figure(history: ProbeHistory) -> Picture:
    """Draw, for each role, how well each symbol can be decoded in the course of the training."""
    probed = _drawn_roles(history)
    roles = [r for r in probed if any(r == role for role, _, _ in history.learned())] or probed
    whole = all(LETTER * len(str(role)) < PANEL for role in roles)
    legend = "" if whole else role_legend(roles)
    figure = picture(
        "when each symbol became decodable",
        "How much of each symbol of its own chain can be read at each role, in the layer that has "
        "the most of it, in the course of the training; dotted: one half. " + legend,
        PANEL * len(roles) + 0.9,
        columns=2,
    )
    panels = figure.subplots(len(roles), 1, sharex=True, squeeze=False)[:, 0]
    for axes, role in zip(panels, roles, strict=True):
        most = np.nan_to_num(history.own[:, :, history.roles.index(role)]).max(1)
        for number, symbol in enumerate(history.symbols):
            style = line_style(number - 1) if number else {"color": DIM}
            axes.plot(history.steps, most[:, number], label=symbol_name(symbol), **style)
        axes.axhline(HALF, color=DIM, linestyle=":", linewidth=0.8)
        axes.set(
            ylabel=str(role) if whole else short_role(role), ylim=(-0.04, 1.08), yticks=(0, 0.5, 1)
        )
    panels[-1].set(xlabel="step", xlim=(history.steps[0], history.steps[-1]))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure
