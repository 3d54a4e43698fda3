"""Arrows of a circuit: bent where several heads do one thing, with the number of the head."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch

from hopscope.circuits import Circuit
from hopscope.facts import Role
from hopscope.report.look import PAPER, SMALL
from hopscope.theory import Path

Stroke = tuple[str, bool]
"""How an arrow is drawn: its colour, and whether it is dashed."""
BEND, BESIDE = 0.14, 0.1
"""How far apart arrows of several heads bend, and the strokes of one arrow."""
FROM, TO = 0.05, 0.95
"""Where in its layer an arrow begins and ends."""
PLACES = (0.5, 0.36, 0.64, 0.25, 0.75, 0.43, 0.57)
"""Where along its arrow a number may stand; the first that is free is taken."""
APART = (0.3, 0.34)
"""How far numbers stand from each other, in columns and in layers."""


class Arrows:
    """Draws arrows into axes, and remembers where it has put a number."""

    def __init__(
        self, axes: Axes, roles: Sequence[Role], layers: Sequence[int], shape: float
    ) -> None:
        """`shape` is the width of a column, in layers."""
        self.axes, self.shape = axes, shape
        self.column = {role: float(number) for number, role in enumerate(roles)}
        self.level = {layer: number for number, layer in enumerate(layers)}
        self.taken: list[tuple[float, float]] = []

    def draw(self, circuit: Circuit, path: Path, strokes: Sequence[Stroke], width: float) -> None:
        """The arrow of a path, with its head's number if it needs one."""
        same = [other for other in circuit.paths if other.reading == path.reading]
        bend = BEND * (same.index(path) - (len(same) - 1) / 2)
        level = self.level[path.layer]
        start = (self.column[path.source], level + FROM)
        end = (self.column[path.reader], level + TO)
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
        place = next(filter(self._free, places), places[0])
        self.taken.append(place)
        box = {"boxstyle": "circle,pad=0.12", "facecolor": PAPER, "linewidth": 0.4}
        middle: dict[str, Any] = {"ha": "center", "va": "center"}
        self.axes.text(*place, str(head), fontsize=SMALL, zorder=5, bbox=box, **middle)

    def _along(
        self, start: tuple[float, float], end: tuple[float, float], bend: float, share: float
    ) -> tuple[float, float]:
        """A point of the arrow: it is the curve of Bézier whose middle point stands aside."""
        across, up = end[0] - start[0], end[1] - start[1]
        aside = 2 * share * (1 - share) * bend
        x = start[0] + share * across + aside * up / self.shape
        return x, start[1] + share * up - aside * across * self.shape

    def _free(self, place: tuple[float, float]) -> bool:
        return all(
            abs(place[0] - x) >= APART[0] or abs(place[1] - y) >= APART[1] for x, y in self.taken
        )
