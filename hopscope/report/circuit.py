"""A circuit as a picture (the paper's figures 5 and 7): layers upward, roles across.

An arrow leads from the source to the destination, one layer up. Its width says how much is lost
without its component; its colour when it emerged, or in a circuit that has an account the symbol
that it brings. Squares then show what each role holds. Components that form no path are labels at
their destinations: *previous*, the name of a relation, *by position*.
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
from hopscope.circuits.components import Component
from hopscope.circuits.emergence import Emergence
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
from hopscope.report.words import drawn as drawn_components
from hopscope.report.words import ordered_roles, pathless, short_target
from hopscope.theory import Path

PLAIN, ROUTES, NEVER = COLOURS[0], DIM, DIM
ROW = 0.5
"""Inches per layer."""
THIN, THICK, ASIDE = 0.8, 4.0, 1.4
"""Points of an arrow without which nothing is lost, or all; of one that routes, at most."""
ONE_COLUMN = 8
"""Roles for which one column of a paper has room."""
SQUARE = 0.11
"""Width of a square that stands for a symbol, in columns."""
LEFT, ASIDE_LAYERS = 2.2, -0.85
"""Columns to the left of the first role, and where the names of layers end."""
STAGGER = 0.36
"""Layers between labels at neighbouring roles, where there are many roles."""
BETWEEN = 0.2
"""Layers between labels that stand at one role."""


@drawn
def circuit_figure(circuit: Circuit, story: Emergence | None = None, of: str = "") -> Picture:
    """The circuit's components; those of every role are in the caption. `of` says whose it is."""
    roles, shown = ordered_roles(circuit), drawn_components(circuit)
    layers = sorted({component.layer for component in shown})
    figure = picture(
        of or _name(circuit),
        _caption(circuit, story),
        ROW * (len(layers) + 0.6) + 1.1,
        columns=1 if len(roles) <= ONE_COLUMN else 2,
    )
    axes = figure.subplots()
    axes.set(xlim=(-LEFT, len(roles) - 0.4), ylim=(-0.6, len(layers) + 0.1))
    axes.set_axis_off()
    _grid(axes, roles, layers)
    arrows = Arrows(axes, roles, layers, figure.get_size_inches()[0] / (len(roles) + LEFT) / ROW)
    strokes = _strokes(circuit, story)
    for component in sorted(shown, key=lambda each: each.kind == "moves"):  # these on top
        for path in component.paths:
            arrows.draw(circuit, path, strokes[path], _width(component))
    _labels(axes, circuit, roles, layers, story)
    if circuit.account is not None:
        _squares(axes, circuit.account, roles, layers)
    _legend(figure, axes, circuit, story)
    return figure


def _name(circuit: Circuit) -> str:
    return f"circuit: {circuit.task.kind}" if circuit.task else "circuit"


def _caption(circuit: Circuit, story: Emergence | None) -> str:
    shown = drawn_components(circuit)
    others = [component for component in circuit.components if component not in shown]
    aside = "; ".join(f"{each.name} {circuit.described(each)}" for each in others)
    labels = " Labels: prev, self, even; pos: by position; own: as in the model."
    labels = labels if pathless(circuit) else ""
    squares = " Squares: what a position holds." if circuit.account is not None else ""
    when = " Grey arrows never passed one half." if story is not None else ""
    return (
        "An arrow leads from the source to the destination, one layer up; its width says how much "
        f"of the gap between everything ablated and the model is lost without it.{squares}{when} "
        f"{roles_told(ordered_roles(circuit))}{labels} {circuit.verdict}."
        + (f" At every role: {aside}." if aside else "")
    )


def _grid(axes: Axes, roles: Sequence[Role], layers: Sequence[int]) -> None:
    """A line per role, and the names of roles and layers; dots where layers are left out."""
    for number, role in enumerate(roles):
        axes.plot([number, number], [0, len(layers)], color=FAINT, linewidth=0.8, zorder=0)
        axes.text(number, -0.15, short_role(role), ha="center", va="top")
    for level, layer in enumerate(layers):
        axes.text(ASIDE_LAYERS, level + 0.5, f"layer {layer}", ha="right", va="center")
    for level, (below, above) in enumerate(pairwise(layers), 1):
        if above > below + 1:
            axes.plot([0.1 - LEFT, ASIDE_LAYERS], [level, level], ":", color=DIM, linewidth=1)


def _width(component: Component) -> float:
    """By what is lost without it: with prescribed attention, or of what routes with computed."""
    moves = component.kind == "moves"
    if component.kind == "weak":
        return THIN
    lost = (component.lost if moves else None) or component.lost_computed
    share = min(1.0, max(0.0, lost.mean if lost else 0.0))
    return THIN + ((THICK if moves else ASIDE) - THIN) * share


def _strokes(circuit: Circuit, story: Emergence | None) -> dict[Path, list[Stroke]]:
    """How each path is drawn: a stroke for every symbol, if the circuit has an account."""
    kinds = {path: each.kind for each in circuit.components for path in each.paths}
    if story is not None or circuit.account is None:
        colours = _colours(circuit, story)
        return {path: [(colours[path], kind == "routes")] for path, kind in kinds.items()}
    account = circuit.account
    found = {}
    for component in circuit.components:
        for path in component.paths:
            its = account.of(component, path)
            carried = list_carried(circuit, its)
            told = [s for s in (its.symbols if its else ()) if s not in carried]
            names = account.holdings.symbols
            found[path] = [(colour_of(names, s), s in told) for s in (*carried, *told)] or [
                (NEVER, kinds[path] == "routes")
            ]
    return found


def _labels(
    axes: Axes,
    circuit: Circuit,
    roles: Sequence[Role],
    layers: Sequence[int],
    story: Emergence | None,
) -> None:
    """Components that form no path, named at their destinations."""
    account = circuit.account
    beside: dict[tuple[int, Role], dict[tuple[str, str], list[int]]] = {}
    for component in pathless(circuit):
        colour = PLAIN if component.kind == "moves" and account is None and story is None else DIM
        its = account.of(component) if account is not None and story is None else None
        if account is not None and its is not None and its.symbols:
            colour = colour_of(account.holdings.symbols, its.symbols[0])
        text = short_target(component)
        for role in component.destinations:
            named = beside.setdefault((component.layer, role), {})
            same = next((label for label in named if label[0] == text), (text, colour))
            named.setdefault(same, []).extend(component.heads)
    box = {"boxstyle": "round,pad=0.15", "facecolor": PAPER, "linewidth": THIN}
    for (layer, role), found in beside.items():
        column = roles.index(role)
        height = layers.index(layer) + 0.5
        if len(roles) > ONE_COLUMN:  # neighbours have no room beside each other
            height += STAGGER * (column % 2 - 0.5)
        for number, ((text, colour), heads) in enumerate(found.items()):
            which = f"\n{'+'.join(map(str, heads))}" if circuit.heads > 1 else ""
            axes.text(
                column, height + BETWEEN * (number - (len(found) - 1) / 2) * 2,
                text + which,
                fontsize=SMALL, ha="center", va="center", color=colour, zorder=5,
                bbox={**box, "edgecolor": colour},
            )  # fmt: skip


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
        kinds = {path: each.kind for each in circuit.components for path in each.paths}
        return {path: PLAIN if kind == "moves" else ROUTES for path, kind in kinds.items()}
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
    kinds = {each.kind for each in circuit.components if each.paths}
    handles: list[Line2D | Patch] = []
    if "moves" in kinds:
        shades: dict[str, Any] = {"color": line, "solid_capstyle": "butt"}
        handles += [
            Line2D([], [], **shades, linewidth=THICK / 2, label="moves content"),
            Line2D([], [], **shades, linewidth=THIN, label="nothing is lost without it"),
            Line2D([], [], **shades, linewidth=THICK, label="the whole gap is lost without it"),
        ]
    if "weak" in kinds and not by_symbol:
        handles.append(Line2D([], [], color=ROUTES, linewidth=THIN, label="weak"))
    if "routes" in kinds or by_symbol:
        said = "routes later heads"
        color = ROUTES if story is None else line
        handles.append(Line2D([], [], color=color, linewidth=ASIDE, ls=(0, (3, 2)), label=said))
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
