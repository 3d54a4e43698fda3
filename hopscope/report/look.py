"""How every figure looks: size, type and colours, on paper, on a page, in the dark.

A function that draws is `drawn`: its figure then has the look that is set around the call. It names
colours by their places in that look (C0, C1, …), so the same lines of code draw for light and dark.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from textwrap import fill
from typing import Any, ParamSpec

import numpy as np
from matplotlib import rc_context
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, to_hex
from matplotlib.figure import Figure

from hopscope.display import Displayed
from hopscope.report.formats import Columns, Style

P = ParamSpec("P")

WIDTHS = {1: 3.35, 2: 6.9}
"""Inches of one column of a paper with two, and of both."""
TEXT, SMALL = 8.0, 7.0
"""Points of all text; of what stands at ticks and beside points."""
LETTER = 0.075
"""Inches that a letter of text takes, if it is a wide one."""
LINES = 8
"""Colours that tell lines apart; after the last they begin again."""
SHADES = 12
"""Steps of the scale from early to late."""
COLOURS = tuple(f"C{number}" for number in range(LINES))
"""The colours of lines and symbols, in this order."""
DIM, FAINT, PAPER, INK = (f"C{LINES + number}" for number in range(4))
"""What is said aside; rules and grounds; what is drawn on, and what is written in."""
TIMES = tuple(f"C{LINES + 4 + number}" for number in range(SHADES))
"""From early to late."""
AMOUNTS = tuple(f"C{LINES + 4 + SHADES + number}" for number in range(3))
"""None, half, all."""


@dataclass(frozen=True)
class Palette:
    """Colours for one ground; contrast and distances are measured in the tests."""

    lines: tuple[str, ...]
    dim: str
    faint: str
    paper: str
    ink: str
    times: tuple[str, str, str]
    """Early, between, late: what is late stands out least from nothing."""
    amounts: tuple[str, str, str]
    """None, half, all."""

    def cycle(self) -> tuple[str, ...]:
        """All colours, each at the place by which figures name it."""
        scale = LinearSegmentedColormap.from_list("times", self.times)
        times = (to_hex(scale(place)) for place in np.linspace(0, 1, SHADES))
        return (*self.lines, self.dim, self.faint, self.paper, self.ink, *times, *self.amounts)


LIGHT = Palette(
    lines=("#3f7cf7", "#6f1b03", "#557719", "#903788", "#af8229", "#10a4aa", "#912c3d", "#1a1a1b"),
    dim="#5f6570",
    faint="#d9dce2",
    paper="#ffffff",
    ink="#1c2027",
    times=("#2a1b5e", "#28708e", "#2f9a6f"),
    amounts=("#ffffff", "#6f9bd1", "#0d2a5c"),
)
DARK = Palette(
    lines=("#5a63e6", "#eb9b61", "#90f976", "#c75c93", "#ddc83c", "#0fd1d8", "#f15f3d", "#65686b"),
    dim="#a3abb8",
    faint="#3d4552",
    paper="#15181e",
    ink="#eceef2",
    times=("#f3cf55", "#55c596", "#3f95b8"),
    amounts=("#15181e", "#3a68ad", "#dcebff"),
)


@dataclass(frozen=True)
class Look:
    """How figures are to look."""

    style: Style = "paper"
    """White, to be printed; for a page, whose reader has chosen light or dark; or dark."""
    columns: Columns | None = None
    """As wide as one column of a paper or as both; None: as each figure is best."""
    dpi: int = 300
    """Dots per inch of PNG, and of maps inside SVG and PDF."""

    @property
    def palette(self) -> Palette:
        return DARK if self.style == "dark" else LIGHT

    def settings(self) -> Any:
        """The settings of matplotlib that make this look."""
        palette = self.palette
        return {
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
            "font.size": TEXT,
            **dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.titlesize"), TEXT),
            **dict.fromkeys(("figure.labelsize", "legend.title_fontsize"), TEXT),
            **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), SMALL),
            "text.color": palette.ink,
            "axes.labelcolor": palette.ink,
            **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), palette.dim),
            **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), palette.ink),
            **dict.fromkeys(("axes.facecolor", "figure.facecolor"), palette.paper),
            **dict.fromkeys(("savefig.facecolor", "savefig.edgecolor"), palette.paper),
            "axes.prop_cycle": f"cycler('color', {[*palette.cycle()]!r})",
            **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
            "patch.edgecolor": palette.ink,
            "axes.linewidth": 0.6,
            "lines.linewidth": 1.2,
            "lines.markersize": 3.5,
            **dict.fromkeys(("xtick.major.width", "ytick.major.width"), 0.6),
            **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
            "legend.handlelength": 1.6,
            "pdf.fonttype": 42,  # several venues refuse the Type 3 that is the default
            "svg.fonttype": "none",  # text stays text: it can be found, copied and edited
        }


_LOOK: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039  (it is frozen)


@contextmanager
def looking(look: Look) -> Iterator[None]:
    """Figures that are drawn within have this look."""
    token = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(token)


class Picture(Displayed, Figure):
    """A figure with its title, its caption, and the look that it was drawn with."""

    def __init__(self, title: str, caption: str, size: tuple[float, float]) -> None:
        super().__init__(figsize=size, layout="constrained")
        self.look, self.name, self.caption = _LOOK.get(), title, " ".join(caption.split())
        if title:
            self.suptitle(fill(title, int(size[0] / LETTER)))

    def draw(self, renderer: Any) -> None:
        """As matplotlib does, in the look that it was made with, whoever asks."""
        with rc_context(self.look.settings()):
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        """The same; what a format needs is asked for after all is drawn."""
        with rc_context(self.look.settings()):
            super().savefig(*args, **options)


def picture(title: str, caption: str, height: float, columns: Columns = 1) -> Picture:
    """A new figure of so many inches, as wide as so many columns unless the look says another."""
    return Picture(title, caption, (width(columns), height))


def width(columns: Columns) -> float:
    """Inches of a figure that is best so many columns wide, in the look that is set."""
    return WIDTHS[_LOOK.get().columns or columns]


def drawn(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """A function whose figure has the look that is set around the call."""

    @wraps(draw)
    def draws(*args: P.args, **options: P.kwargs) -> Picture:
        with rc_context(_LOOK.get().settings()):
            return draw(*args, **options)

    return draws


def times() -> ListedColormap:
    """The scale from early to late, in the look that is set."""
    return ListedColormap([to_hex(shade) for shade in TIMES])


def amounts() -> LinearSegmentedColormap:
    """The scale from nothing to all, in the look that is set."""
    return LinearSegmentedColormap.from_list("amounts", AMOUNTS)
