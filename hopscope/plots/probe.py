"""Which symbols are decodable at each role: as figures (layers upward, roles across, a colour for
each symbol, as in the paper's figure 5), and as tables.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from hopscope.circuits.probe import Probe, ProbeHistory
from hopscope.facts import Role, symbol_name
from hopscope.milestones import HALF
from hopscope.plots.look import COLOURS, DIM, FAINT, LINES, Picture, drawn, picture
from hopscope.plots.symbols import chain_order, role_legend, short_role
from hopscope.shapes import Float

ROW = 0.3
"""Inches per layer."""
ONE_COLUMN = 8
"""Largest number of roles that fit into one column of a paper."""
CELL = 0.84
"""Width and height of the area of bars, as a share of the cell."""
LEAST = 0.03
"""A share below this is not drawn."""
FULL, LITTLE = 0.95, 0.1
"""Shares from which a symbol counts as fully decodable, and up to which it is not printed."""


@drawn
def probe_figure(found: Probe, of: str = "") -> Picture:
    """Draw a cell for every layer and role, with a bar for each symbol, as high as its share."""
    roles = _roles(found)
    figure = picture(
        of or "which symbols can be read at each role",
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
    axes.set_xticks(range(len(roles)), [short_role(role) for role in roles])
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
        if share > LEAST:
            corner = (left + number * width, low)
            bar = Rectangle(
                corner, width, CELL * min(1.0, share), facecolor=colours[number], linewidth=0
            )
            axes.add_patch(bar)


def _roles(found: Probe | ProbeHistory) -> list[Role]:
    """Return the roles that occur, in the order of a chain."""
    own = found.stream.own if isinstance(found, Probe) else found.own
    return chain_order(r for n, r in enumerate(found.roles) if np.isfinite(own[..., n, :]).any())


def probe_rows(found: Probe) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of a table: for each layer, last first, each role's symbols."""
    roles = _roles(found)
    names = ["input", *(f"layer {n}" for n in range(found.layers))]
    rows = [
        [names[layer], *(_shares(found, role, layer) for role in roles)]
        for layer in reversed(range(found.layers + 1))
    ]
    return ["after", *map(short_role, roles)], rows


def _shares(found: Probe, role: Role, layer: int) -> str:
    """Return the decodable symbols with their shares; a share near 1 is left out."""
    texts = []
    for symbol in found.symbols:
        share = found.share(role, symbol, layer)
        if share >= FULL:
            texts.append(symbol)
        elif share > LITTLE:
            texts.append(f"{symbol}:{share:.2f}".replace("0.", "."))
    return " ".join(texts) or "·"


def added_rows(found: Probe) -> list[tuple[str, str, str]]:
    """Return rows (head, role, symbols) of symbols that heads add where they were not decodable."""
    if found.heads is None:
        return []
    rows = []
    for layer, head in np.ndindex(found.heads.own.shape[:2]):
        for role in _roles(found):
            shares_here = found.heads.own[layer, head, found.roles.index(role)]
            texts = [
                f"{symbol} {shares_here[found.symbols.index(symbol)]:.2f}"
                for symbol in sorted(found.added((layer, head), role))
            ]
            if texts:
                rows.append((f"{layer}.{head}", str(role), ", ".join(texts)))
    return rows


def probe_remarks(found: Probe) -> list[str]:
    """Return remarks on a probe, one line each."""
    lines = []
    if found.at_chance:
        lines.append(
            f"this model answers at chance (loss {found.loss:.3f}, chance {found.chance:.3f}): "
            "little more than its input can be read"
        )
    others, noise = found.stream.other_chain, found.stream.other_example
    if np.isfinite(others).any():
        lines.append(f"symbols of another chain: at most {np.nanmax(others):.2f} can be read")
    low, high = np.nanmin(noise), np.nanmax(noise)
    lines.append(
        f"symbols of another example (noise): {low:+.3f} … {high:+.3f}; "
        f"intervals: ± {np.nanmax(found.stream.half):.3f} at most"
    )
    never = [str(r) for n, r in enumerate(found.roles) if np.isnan(found.stream.own[:, n]).all()]
    if never:
        lines.append(f"roles that never occur in a chain: {', '.join(never)}")
    return lines


def history_rows(history: ProbeHistory) -> list[tuple[str, str, str]]:
    """Return rows (role, symbol, step) of when each symbol became decodable at each role."""
    return [
        (str(role), symbol, "never" if step is None else f"{step:,.0f}")
        for role, symbol, step in history.learned()
    ]


@drawn
def history_figure(history: ProbeHistory, of: str = "") -> Picture:
    """Draw, for each role, how well each symbol can be decoded in the course of the training."""
    roles = [r for r in _roles(history) if any(r == role for role, _, _ in history.learned())]
    roles = roles or _roles(history)
    figure = picture(
        of or "when each symbol became decodable",
        "How much of each symbol of its own chain can be read at each role, in the layer that has "
        "the most of it, in the course of the training; dotted: one half.",
        0.85 * len(roles) + 0.9,
        columns=2,
    )
    panels = figure.subplots(len(roles), 1, sharex=True, squeeze=False)[:, 0]
    for axes, role in zip(panels, roles, strict=True):
        most = np.nan_to_num(history.own[:, :, history.roles.index(role)]).max(1)
        for number, symbol in enumerate(history.symbols):
            colour = colour_of(history.symbols, symbol)
            axes.plot(history.steps, most[:, number], color=colour, label=symbol_name(symbol))
        axes.axhline(HALF, color=DIM, linestyle=":", linewidth=0.8)
        axes.set(ylabel=str(role), ylim=(-0.04, 1.08), yticks=(0, 0.5, 1))
    panels[-1].set(xlabel="step", xlim=(0, history.steps[-1]))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure
