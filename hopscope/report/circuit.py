"""A circuit as a picture (the paper's figures 5 and 7): layers upward, roles across.

An arrow leads from the role that is read to the role that reads, one layer up. Its width says
what removing the path costs; its colour when it emerged, or in a circuit that has an account the
symbol that it brings. Squares then show what each role holds. Rows that do something and form no
path, as those that attend by position, are diamonds at the role that reads.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from hopscope.circuits import Circuit
from hopscope.circuits.account import Account
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.parts import Part
from hopscope.facts import Role, symbol_name
from hopscope.report.account import list_carried
from hopscope.report.arrows import Arrows, Stroke
from hopscope.report.look import (
    COLOURS,
    DIM,
    FAINT,
    PAPER,
    SMALL,
    TIMES,
    Picture,
    drawn,
    picture,
    times,
)
from hopscope.report.probe import colour_of
from hopscope.report.symbols import roles_told, short_role
from hopscope.report.words import many_heads, ordered_roles, pathless
from hopscope.theory import Path

PLAIN, LOCATES, NEVER = COLOURS[0], DIM, DIM
ROW = 0.5
"""Inches per layer."""
THIN, THICK, ASIDE = 0.8, 4.0, 1.4
"""Points of an arrow that costs nothing and of one that costs all; of one that locates, at most."""
ONE_COLUMN = 8
"""Roles for which one column of a paper has room."""
SQUARE = 0.11
"""Width of a square that stands for a symbol, in columns."""
DIAMOND = 4.5
"""Points across a diamond, without its line."""
BESIDE = 0.22
"""Columns between diamonds that stand at one role."""


@drawn
def circuit_figure(circuit: Circuit, story: Emergence | None = None, of: str = "") -> Picture:
    """The circuit's paths; other parts are told in the caption. `of` says whose circuit it is."""
    roles = ordered_roles(circuit)
    drawn_parts = [part for part in circuit.parts if part.paths] + pathless(circuit)
    layers = sorted({part.layer for part in drawn_parts})
    figure = picture(
        of or _name(circuit),
        _caption(circuit, story),
        ROW * (len(layers) + 0.6) + 1.1,
        columns=1 if len(roles) <= ONE_COLUMN else 2,
    )
    axes = figure.subplots()
    axes.set(xlim=(-1.6, len(roles) - 0.4), ylim=(-0.6, len(layers) + 0.1))
    axes.set_axis_off()
    _grid(axes, roles, layers)
    arrows = Arrows(axes, roles, layers, figure.get_size_inches()[0] / (len(roles) + 1.6) / ROW)
    strokes = _strokes(circuit, story)
    for part in sorted(circuit.parts, key=lambda part: part.kind == "carries"):  # these on top
        for path in part.paths:
            arrows.draw(circuit, path, strokes[path], _width(circuit, part))
    _diamonds(axes, circuit, roles, layers, story)
    if circuit.account is not None:
        _squares(axes, circuit.account, roles, layers)
    _legend(figure, axes, circuit, story)
    return figure


def _name(circuit: Circuit) -> str:
    return f"circuit: {circuit.task.kind}" if circuit.task else "circuit"


def _caption(circuit: Circuit, story: Emergence | None) -> str:
    losses, (alone, none), diamonds = circuit.losses, circuit.left_in, pathless(circuit)
    others = [part for part in circuit.parts if not part.paths and part not in diamonds]
    beside, aside = _listed(circuit, diamonds), _listed(circuit, others)
    squares = " Squares: what a position holds." if circuit.account is not None else ""
    when = " Grey arrows never passed one half." if story is not None else ""
    return (
        "An arrow leads from the role that is read to the role that reads, one layer up; its width "
        f"says what removing it costs.{squares}{when} {roles_told(ordered_roles(circuit))} "
        f"Loss {losses.mean('clean'):.3f} as it is, {losses.mean('ideal'):.3f} {alone}, "
        f"{losses.mean('ablated'):.2f} {none}, {losses.guess:.2f} by guessing."
        + (f" Diamonds, rows without a path: {beside}." if beside else "")
        + (f" Not drawn: {aside}." if aside else "")
    )


def _listed(circuit: Circuit, parts: Sequence[Part]) -> str:
    return "; ".join(f"{part.name} {circuit.described(part)}" for part in parts)


def _grid(axes: Axes, roles: Sequence[Role], layers: Sequence[int]) -> None:
    """A line per role, and the names of roles and layers; dots where layers are left out."""
    for number, role in enumerate(roles):
        axes.plot([number, number], [0, len(layers)], color=FAINT, linewidth=0.8, zorder=0)
        axes.text(number, -0.15, short_role(role), ha="center", va="top")
    for level, layer in enumerate(layers):
        axes.text(-0.5, level + 0.5, f"layer {layer}", ha="right", va="center")
    for level, (below, above) in enumerate(pairwise(layers), 1):
        if above > below + 1:
            axes.plot([-1.5, -0.5], [level, level], ":", color=DIM, linewidth=1)


def _width(circuit: Circuit, part: Part) -> float:
    """By the cost of removal: as the circuit stands, or for what only locates, in the model."""
    carries = part.kind == "carries"
    cost = (part.cost if carries else None) or part.alone_cost
    share = min(1.0, (cost.mean if cost else 0.0) / max(circuit.losses.guess, 1e-12))
    return THIN + ((THICK if carries else ASIDE) - THIN) * share


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


def _diamonds(
    axes: Axes,
    circuit: Circuit,
    roles: Sequence[Role],
    layers: Sequence[int],
    story: Emergence | None,
) -> None:
    """Rows without a path, at the roles that read: a diamond for each symbol that they bring."""
    account = circuit.account
    beside: dict[tuple[int, Role], list[tuple[str, Part]]] = {}
    for part in pathless(circuit):
        colours = [PLAIN if part.kind == "carries" and account is None and story is None else DIM]
        its = account.of(part) if account is not None and story is None else None
        if account is not None and its is not None and its.symbols:
            colours = [colour_of(account.holdings.symbols, symbol) for symbol in its.symbols]
        for role in part.readers:
            beside.setdefault((part.layer, role), []).extend((one, part) for one in colours)
    for (layer, role), found in beside.items():
        height = layers.index(layer) + 0.5
        for number, (colour, part) in enumerate(found):
            x = roles.index(role) + BESIDE * (number - (len(found) - 1) / 2)
            axes.plot(
                x, height, "D", markersize=DIAMOND, markerfacecolor=PAPER, markeredgecolor=colour,
                markeredgewidth=max(THIN, _width(circuit, part) / 2), zorder=4,
            )  # fmt: skip
            if many_heads(circuit):
                heads = part.name.partition(".")[2]
                axes.text(x + 0.09, height, heads, fontsize=SMALL, va="center", zorder=5)


def _squares(axes: Axes, account: Account, roles: Sequence[Role], layers: Sequence[int]) -> None:
    """What each role holds before each layer that is drawn, and after the last."""
    holdings = account.holdings
    for level, after in enumerate((*layers, layers[-1] + 1) if layers else ()):
        for column, role in enumerate(roles):
            held = holdings.held(role, after)
            for number, symbol in enumerate(held):
                left = column + SQUARE * (number - len(held) / 2)
                colour = colour_of(holdings.symbols, symbol)
                corner = (left, level - SQUARE / 2)
                axes.add_patch(Rectangle(corner, SQUARE * 0.9, SQUARE, facecolor=colour, zorder=4))


def _colours(circuit: Circuit, story: Emergence | None) -> dict[Path, str]:
    if story is None:
        kinds = {path: part.kind for part in circuit.parts for path in part.paths}
        return {path: PLAIN if kind == "carries" else LOCATES for path, kind in kinds.items()}
    scale = _time_scale(story)
    when = {path: story.emerged(path) for path in circuit.paths}
    return {
        path: NEVER if step is None else TIMES[min(int(scale(step) * len(TIMES)), len(TIMES) - 1)]
        for path, step in when.items()
    }


def _time_scale(story: Emergence) -> Normalize:
    """From the first path that emerged to the last; of one moment alone there is no scale."""
    known = [step for _, step in story.order if step is not None] or [0.0]
    return Normalize(min(known), max(*known, min(known) + 1))


def _legend(figure: Picture, axes: Axes, circuit: Circuit, story: Emergence | None) -> None:
    """What colours, dashes and widths say."""
    by_symbol = circuit.account is not None and story is None
    line = DIM if by_symbol or story is not None else PLAIN
    kinds = {part.kind for part in circuit.parts if part.paths}
    handles: list[Line2D | Patch] = []
    if "carries" in kinds:
        shades: dict[str, Any] = {"color": line, "solid_capstyle": "butt"}
        guess = f"loss without it: {circuit.losses.guess:.2g}, as by guessing"
        handles += [
            Line2D([], [], **shades, linewidth=THICK / 2, label="carries the answer"),
            Line2D([], [], **shades, linewidth=THIN, label="costs nothing"),
            Line2D([], [], **shades, linewidth=THICK, label=guess),
        ]
    if kinds - {"carries", None} or by_symbol:
        said = "tells later heads where to look"
        color = LOCATES if story is None else line
        handles.append(Line2D([], [], color=color, linewidth=ASIDE, ls=(0, (3, 2)), label=said))
    if pathless(circuit):
        diamond: dict[str, Any] = {"marker": "D", "markersize": DIAMOND, "markerfacecolor": PAPER}
        handles.append(Line2D([], [], ls="", color=line, **diamond, label="row without a path"))
    if by_symbol:
        assert circuit.account is not None
        names = circuit.account.holdings.symbols
        handles += [
            Patch(color=colour_of(names, symbol), label=symbol_name(symbol)) for symbol in names
        ]
    wide = figure.get_size_inches()[0] > 4
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if wide else 1 + by_symbol)
    if story is not None and any(step is not None for _, step in story.order):
        scale = ScalarMappable(_time_scale(story), times())
        bar = figure.colorbar(scale, ax=axes, shrink=0.8, pad=0.01, aspect=18)
        bar.set_label("step at which attention passed 0.5")
