"""A circuit as a picture (the paper's figures 5 and 7): layers upward, roles across.

An arrow leads from the role that is read to the role that reads, one layer up. Its width says
what removing the path costs; its colour when it emerged, or in a circuit that has an account the
symbol that it brings. Squares then show what each role holds.
"""

import math

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from hopscope.circuits import Circuit
from hopscope.circuits.account import Account
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.parts import Part
from hopscope.facts import Role
from hopscope.report.account import list_carried
from hopscope.report.contents import colour_of
from hopscope.report.depth import short_role
from hopscope.report.words import many_heads, ordered_roles
from hopscope.theory import Path

PLAIN, LOCATES = "#3366aa", "#999999"
TIMES = "viridis_r"
NEVER = "#cccccc"
ROW, COLUMN = 0.62, 0.85
"""Inches per layer and per role."""
THIN, THICK = 1.0, 5.0
SIDE = 3.4
"""Room for words at the right, in columns."""
SIDE_TEXT = 52
"""Characters of a mechanism beside its layer."""
SQUARE = 0.11
"""Width of a square that stands for a symbol, in columns."""
BESIDE = 0.1
"""How far apart the strokes of one arrow bend."""
Stroke = tuple[str, bool]
"""How an arrow is drawn: its colour, and whether it is dashed."""


def circuit_figure(circuit: Circuit, story: Emergence | None = None) -> Figure:
    """The circuit's paths; other mechanisms in words at the right."""
    roles = ordered_roles(circuit)
    layers = sorted({part.layer for part in circuit.parts})
    beside = {layer: _side_text(circuit, layer) for layer in layers}
    side = SIDE if any(beside.values()) else 0.3
    size = (COLUMN * (len(roles) + side) + 1.6, ROW * (len(layers) + 1) + 1.3)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    height = {layer: number for number, layer in enumerate(layers)}
    for number, role in enumerate(roles):
        axes.plot([number, number], [0, len(layers)], color="#dddddd", linewidth=1, zorder=0)
        axes.text(number, -0.32, short_role(role), ha="center", va="top", fontsize=10)
    strokes = _strokes(circuit, story)
    for part in circuit.parts:
        for path in part.paths:
            _arrow(axes, circuit, part, path, (roles, height, strokes[path]))
    if circuit.account is not None:
        _squares(axes, circuit.account, roles, layers)
    for layer, level in height.items():
        axes.text(-0.7, level + 0.5, f"layer {layer}", ha="right", va="center", fontsize=9)
        axes.text(
            len(roles) - 0.4, level + 0.5, beside[layer], ha="left", va="center", fontsize=6.5,
            color="#555555",
        )  # fmt: skip
    _finish(figure, axes, circuit, story, (len(roles) + side, len(layers)))
    return figure


def _arrow(
    axes: Axes,
    circuit: Circuit,
    part: Part,
    path: Path,
    places: tuple[list[Role], dict[int, int], list[Stroke]],
) -> None:
    roles, height, strokes = places
    level = height[path.layer]
    source, reader = roles.index(path.source), roles.index(path.reader)
    same = [other for other in circuit.paths if other.reading == path.reading]
    bend = 0.12 * (same.index(path) - (len(same) - 1) / 2)
    for number, (colour, dashed) in enumerate(strokes):
        aside = BESIDE * (number - (len(strokes) - 1) / 2)
        axes.add_patch(
            FancyArrowPatch(
                (source, level + 0.04),
                (reader, level + 0.96),
                connectionstyle=f"arc3,rad={bend + aside}",
                arrowstyle="-|>",
                mutation_scale=11,
                linewidth=_width(circuit, part) / len(strokes),
                linestyle=(0, (3, 2)) if dashed else "-",
                color=colour,
                shrinkA=0,
                shrinkB=0,
            )
        )
    if len(same) > 1 or many_heads(circuit):
        box = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "linewidth": 0.4}
        middle = (source + reader) / 2 + 2.2 * bend
        axes.text(middle, level + 0.5, str(path.head), fontsize=6.5, ha="center", bbox=box)


def _width(circuit: Circuit, part: Part) -> float:
    """By the cost of removal: as the circuit stands, or for what only locates, in the model."""
    cost = part.cost.mean if part.kind == "carries" else part.alone_cost.mean
    share = min(1.0, cost / max(circuit.losses.guess, 1e-12))
    return THIN + (THICK - THIN) * share


def _strokes(circuit: Circuit, story: Emergence | None) -> dict[Path, list[Stroke]]:
    """How each path is drawn: a stroke for every symbol, if the circuit has an account."""
    kinds = {path: part.kind for part in circuit.parts for path in part.paths}
    if story is not None or circuit.account is None:
        colours = _colours(circuit, story)
        return {path: [(colours[path], kind != "carries")] for path, kind in kinds.items()}
    account = circuit.account
    found = {}
    for part in circuit.parts:
        for path in part.paths:
            its = account.of(part, path)
            carried = list_carried(circuit, its)
            told = [s for s in (its.symbols if its else ()) if s not in carried]
            names = account.holdings.symbols
            found[path] = [(colour_of(names, s), s in told) for s in (*carried, *told)] or [
                (NEVER, kinds[path] != "carries")
            ]
    return found


def _squares(axes: Axes, account: Account, roles: list[Role], layers: list[int]) -> None:
    """What each role holds before each layer that is drawn, and after the last."""
    holdings = account.holdings
    for level, after in enumerate((*layers, layers[-1] + 1) if layers else ()):
        for column, role in enumerate(roles):
            held = holdings.held(role, after)
            for number, symbol in enumerate(held):
                left = column + SQUARE * (number - len(held) / 2)
                colour = colour_of(holdings.symbols, symbol)
                corner = (left, level - SQUARE / 2)
                axes.add_patch(Rectangle(corner, SQUARE * 0.9, SQUARE, facecolor=colour, zorder=3))


def _colours(circuit: Circuit, story: Emergence | None) -> dict[Path, str]:
    if story is None:
        kinds = {path: part.kind for part in circuit.parts for path in part.paths}
        return {path: PLAIN if kind == "carries" else LOCATES for path, kind in kinds.items()}
    scale, shades = _time_scale(story), colormaps[TIMES]
    when = {path: story.emerged(path) for path in circuit.paths}
    return {
        path: NEVER if step is None else to_hex(shades(scale(step))) for path, step in when.items()
    }


def _time_scale(story: Emergence) -> Normalize:
    known = [step for _, step in story.order if step is not None]
    return Normalize(min(known, default=0.0), max(known, default=1.0))


def _side_text(circuit: Circuit, layer: int) -> str:
    """What the layer's heads do beside their paths."""
    lines = []
    for part in circuit.parts:
        if part.layer == layer and not part.paths:
            text = f"{part.name}: {circuit.described(part)}"
            lines.append(text if len(text) <= SIDE_TEXT else text[: SIDE_TEXT - 1] + "…")
    return "\n".join(lines)


def _finish(
    figure: Figure, axes: Axes, circuit: Circuit, story: Emergence | None, size: tuple[float, int]
) -> None:
    columns, layers = size
    axes.set(xlim=(-1.6, columns), ylim=(-0.7, layers + 0.1))
    axes.set_axis_off()
    losses = circuit.losses
    if circuit.account is not None and story is None:
        names = circuit.account.holdings.symbols
        figure.legend(
            handles=[Patch(color=colour_of(names, symbol), label=symbol) for symbol in names],
            loc="outside lower center", ncols=len(names), frameon=False, fontsize=8,
        )  # fmt: skip
    axes.set_title(
        f"loss {losses.mean('clean'):.3f} as it is, {losses.mean('ideal'):.3f} with this attention "
        f"alone, {losses.mean('ablated'):.2f} with none\n"
        + (
            "solid: carries the answer · dashed: tells later heads where to look · number: head"
            if story is not None or circuit.account is None
            else "arrow: the symbol that it brings (dashed: by which heads find their places) · "
            "squares: what a position holds"
        ),
        fontsize=8,
    )
    if story is not None and not math.isclose(_time_scale(story).vmin, _time_scale(story).vmax):  # type: ignore[arg-type]
        bar = figure.colorbar(
            ScalarMappable(_time_scale(story), TIMES), ax=axes, shrink=0.6, pad=0.01
        )
        bar.set_label("step at which attention passed 0.5", fontsize=7)
        bar.ax.tick_params(labelsize=6)
