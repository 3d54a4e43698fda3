"""A circuit as a picture (the paper's figures 5 and 7): layers upward, roles across.

An arrow goes from the source to the destination, one layer up. Its width is the loss without its
component. Its colour is the time of its emergence, or, if the circuit has an account, the symbol
that it moves; squares then show what each role holds. Components without a path are labels at their
destinations: *previous*, the name of a relation, *by position*.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from hopscope.circuits import Circuit
from hopscope.circuits.account import Account
from hopscope.circuits.components import Component
from hopscope.circuits.emergence import Emergence
from hopscope.facts import Role, symbol_name
from hopscope.plots.account import list_carried
from hopscope.plots.look import (
    COLOURS,
    DIM,
    FAINT,
    PAPER,
    SMALL,
    STEP_COLOURS,
    Picture,
    drawn,
    picture,
    rotation,
    times,
)
from hopscope.plots.probe import colour_of
from hopscope.plots.symbols import role_legend, short_role
from hopscope.plots.words import drawn_components, ordered_roles, pathless, short_target
from hopscope.theory import Path

PLAIN, ROUTES, NEVER = COLOURS[0], DIM, DIM
ROW = 0.5
"""Inches per layer."""
THIN, THICK, ASIDE = 0.8, 4.0, 1.4
"""Widths of arrows in points: if nothing is lost without it, if all is; the most if it routes."""
ONE_COLUMN = 8
"""Largest number of roles that fit into one column of a paper."""
SQUARE = 0.11
"""Width of a symbol's square, in columns."""
LEFT, ASIDE_LAYERS = 2.2, -0.85
"""Columns to the left of the first role, and the right end of the names of layers."""
STAGGER = 0.36
"""Vertical offset (in layers) of labels at neighbouring roles, if there are many roles."""
BETWEEN = 0.2
"""Half the distance (in layers) of labels at one role."""
BEND, BESIDE = 0.14, 0.1
"""Difference in bend between arrows of several heads, and between the strokes of one arrow."""
FROM, TO = 0.05, 0.95
"""Where an arrow begins and ends within its layer."""
PLACES = (0.5, 0.36, 0.64, 0.25, 0.75, 0.43, 0.57)
"""Places of a number along its arrow: the first free one is taken, otherwise the freest."""
APART = (0.3, 0.34)
"""Least distance of numbers, in columns and in layers."""
Stroke = tuple[str, bool]
"""The colour of an arrow, and whether it is dashed."""


@drawn
def circuit_figure(circuit: Circuit, story: Emergence | None = None, of: str = "") -> Picture:
    """Draw the circuit, coloured by emergence if there is a story; `of` is the figure's name.

    Components with every role as destination are not drawn but listed in the caption.
    """
    roles, shown = ordered_roles(circuit), drawn_components(circuit)
    layers = sorted({component.layer for component in shown})
    figure = picture(
        of or _name(circuit),
        _caption(circuit, story),
        ROW * (len(layers) + 0.6) + 0.5,
        columns=1 if len(roles) <= ONE_COLUMN else 2,
    )
    axes = figure.subplots()
    axes.set(xlim=(-LEFT, len(roles) - 0.4), ylim=(-0.6, len(layers) + 0.1))
    axes.set_axis_off()
    if not circuit.components:
        axes.text(0.5, 0.5, "no component", ha="center", transform=axes.transAxes)
    room = figure.get_figwidth() / (len(roles) + LEFT)
    _grid(axes, roles, layers, room)
    arrows = Arrows(axes, roles, layers, room / ROW)
    strokes = _strokes(circuit, story)
    for component in sorted(shown, key=lambda each: each.kind == "moves"):  # drawn last, on top
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
        "of the gap between everything ablated and the model is lost without it (dashed: with "
        f"computed attention, and thinner).{squares}{when} "
        f"{role_legend(ordered_roles(circuit))}{labels} {circuit.verdict}."
        + (f" At every role: {aside}." if aside else "")
    )


def _grid(axes: Axes, roles: Sequence[Role], layers: Sequence[int], room: float) -> None:
    """Draw a line per role, the names of roles and layers, and dots for omitted layers. `room` is
    the width of a column, in inches.
    """
    names = [short_role(role) for role in roles]
    turned = rotation(names, room)
    for number, name in enumerate(names):
        axes.plot([number, number], [0, len(layers)], color=FAINT, linewidth=0.8, zorder=0)
        axes.text(number, -0.15, name, ha="center", va="top", rotation=turned)
    for level, layer in enumerate(layers):
        axes.text(ASIDE_LAYERS, level + 0.5, f"layer {layer}", ha="right", va="center")
    for level, (below, above) in enumerate(pairwise(layers), 1):
        if above > below + 1:
            axes.plot([0.1 - LEFT, ASIDE_LAYERS], [level, level], ":", color=DIM, linewidth=1)


def _width(component: Component) -> float:
    """Return the width of a component's arrows, by the loss without it.

    The loss is with prescribed attention for "moves", and with computed attention for "routes".
    """
    moves = component.kind == "moves"
    if component.kind == "weak":
        return THIN
    lost = (component.lost if moves else None) or component.lost_computed
    share = min(1.0, max(0.0, lost.mean if lost else 0.0))
    return THIN + ((THICK if moves else ASIDE) - THIN) * share


def _strokes(circuit: Circuit, story: Emergence | None) -> dict[Path, list[Stroke]]:
    """Return the strokes of each path: one for every symbol if the circuit has an account."""
    found = {}
    for component in circuit.components:
        dashed = component.kind == "routes"
        for path in component.paths:
            if story is not None:
                found[path] = [(_colour_of_time(story, path), dashed)]
            elif circuit.account is None:
                found[path] = [(PLAIN if component.kind == "moves" else ROUTES, dashed)]
            else:
                symbols = _symbols(circuit, circuit.account, component, path)
                found[path] = symbols or [(NEVER, dashed)]
    return found


def _symbols(circuit: Circuit, account: Account, component: Component, path: Path) -> list[Stroke]:
    """Return a stroke for each symbol that a path moves to the answer or routes by."""
    patched, names = account.of(component, path), account.decodable.symbols
    carried = list_carried(circuit, patched)
    routed = [s for s in (patched.routed if patched else ()) if s not in carried]
    return [(colour_of(names, s), s in routed) for s in (*carried, *routed)]


def _labels(
    axes: Axes,
    circuit: Circuit,
    roles: Sequence[Role],
    layers: Sequence[int],
    story: Emergence | None,
) -> None:
    """Draw labels for components without a path at their destinations."""
    account = circuit.account
    beside: dict[tuple[int, Role], dict[tuple[str, str], list[int]]] = {}
    for component in pathless(circuit):
        colour = PLAIN if component.kind == "moves" and account is None and story is None else DIM
        patched = account.of(component) if account is not None and story is None else None
        if account is not None and patched is not None and patched.symbols:
            colour = colour_of(account.decodable.symbols, patched.symbols[0])
        text = short_target(component)
        for role in component.destinations:
            named = beside.setdefault((component.layer, role), {})
            same = next((label for label in named if label[0] == text), (text, colour))
            named.setdefault(same, []).extend(component.heads)
    box = {"boxstyle": "round,pad=0.15", "facecolor": PAPER, "linewidth": THIN}
    for (layer, role), found in beside.items():
        column = roles.index(role)
        height = layers.index(layer) + 0.5
        if len(roles) > ONE_COLUMN:  # labels of neighbours would overlap
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
    """Draw squares for what each role holds before each drawn layer, and after the last."""
    decodable = account.decodable
    for level, after in enumerate((*layers, layers[-1] + 1) if layers else ()):
        for column, role in enumerate(roles):
            held = decodable.held(role, after)
            for number, symbol in enumerate(held):
                left = column + SQUARE * (number - len(held) / 2)
                colour = colour_of(decodable.symbols, symbol)
                corner = (left, level - SQUARE / 2)
                axes.add_patch(Rectangle(corner, SQUARE * 0.9, SQUARE, facecolor=colour, zorder=4))


def _colour_of_time(story: Emergence, path: Path) -> str:
    """Return the colour of a path's emergence, from early to late."""
    step = story.emerged(path)
    if step is None:
        return NEVER
    return STEP_COLOURS[
        min(int(_time_scale(story)(step) * len(STEP_COLOURS)), len(STEP_COLOURS) - 1)
    ]


def _time_scale(story: Emergence) -> Normalize:
    """Return the scale from the first emergence to the last (at least one step long)."""
    known = [step for _, step in story.order if step is not None] or [0.0]
    return Normalize(min(known), max(*known, min(known) + 1))


def _legend(figure: Picture, axes: Axes, circuit: Circuit, story: Emergence | None) -> None:
    """Draw the legend of colours and dashes; the caption explains widths."""
    by_symbol = circuit.account is not None and story is None
    line = DIM if by_symbol or story is not None else PLAIN
    kinds = {each.kind for each in circuit.components if each.paths}
    handles: list[Line2D | Patch] = []
    if "moves" in kinds:
        handles.append(Line2D([], [], color=line, linewidth=THICK / 2, label="moves content"))
    if "weak" in kinds and not by_symbol:
        handles.append(Line2D([], [], color=ROUTES, linewidth=THIN, label="weak"))
    if "routes" in kinds or by_symbol:
        dashed = {"color": ROUTES, "linewidth": ASIDE, "linestyle": (0, (3, 2))}
        handles.append(Line2D([], [], **dashed, label="routes later heads"))  # type: ignore[arg-type]
    if circuit.account is not None:  # squares have these colours in every figure
        names = circuit.account.decodable.symbols
        handles += [
            Patch(color=colour_of(names, symbol), label=symbol_name(symbol)) for symbol in names
        ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)))
    if story is not None and any(step is not None for _, step in story.order):
        scale = ScalarMappable(_time_scale(story), times())
        bar = figure.colorbar(scale, ax=axes, shrink=0.8, pad=0.01, aspect=18)
        bar.set_label("step of emergence")


class Arrows:
    """Draws arrows with the numbers of heads; numbers do not overlap."""

    def __init__(
        self, axes: Axes, roles: Sequence[Role], layers: Sequence[int], shape: float
    ) -> None:
        """`shape` is the width of a column, in layers."""
        self.axes, self.shape = axes, shape
        self.column = {role: float(number) for number, role in enumerate(roles)}
        self.level = {layer: number for number, layer in enumerate(layers)}
        self.taken: list[tuple[float, float]] = []

    def draw(self, circuit: Circuit, path: Path, strokes: Sequence[Stroke], width: float) -> None:
        """Draw the arrow of a path, with its head's number if there are several heads."""
        same = [other for other in circuit.paths if other.reading == path.reading]
        bend = BEND * (same.index(path) - (len(same) - 1) / 2)
        level = self.level[path.layer]
        start = (self.column[path.source], level + FROM)
        end = (self.column[path.destination], level + TO)
        for number, (colour, dashed) in enumerate(strokes):
            aside = BESIDE * (number - (len(strokes) - 1) / 2)
            self.axes.add_patch(
                FancyArrowPatch(
                    start,
                    end,
                    connectionstyle=f"arc3,rad={bend + aside}",
                    arrowstyle="-|>",
                    mutation_scale=8,
                    linewidth=width / len(strokes),
                    linestyle=(0, (3, 2)) if dashed else "-",
                    color=colour,
                    shrinkA=0,
                    shrinkB=0,
                    zorder=2 if dashed else 3,
                )
            )
        if len(same) > 1 or circuit.heads > 1:
            self._number(path.head, start, end, bend)

    def _number(
        self, head: int, start: tuple[float, float], end: tuple[float, float], bend: float
    ) -> None:
        places = [self._along(start, end, bend, share) for share in PLACES]
        place = next(
            (each for each in places if self._room(each) >= 1), max(places, key=self._room)
        )
        self.taken.append(place)
        box = {"boxstyle": "circle,pad=0.12", "facecolor": PAPER, "linewidth": 0.4}
        middle: dict[str, Any] = {"ha": "center", "va": "center"}
        self.axes.text(*place, str(head), fontsize=SMALL, zorder=5, bbox=box, **middle)

    def _along(
        self, start: tuple[float, float], end: tuple[float, float], bend: float, share: float
    ) -> tuple[float, float]:
        """Return a point of the arrow, a quadratic Bézier curve."""
        across, up = end[0] - start[0], end[1] - start[1]
        aside = 2 * share * (1 - share) * bend
        x = start[0] + share * across + aside * up / self.shape
        return x, start[1] + share * up - aside * across * self.shape

    def _room(self, place: tuple[float, float]) -> float:
        """Return the distance of a place to the nearest number; at 1 or more it is free."""
        return min(
            (
                max(abs(place[0] - x) / APART[0], abs(place[1] - y) / APART[1])
                for x, y in self.taken
            ),
            default=1.0,
        )
