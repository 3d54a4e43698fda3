"""The style of all figures: widths, type and colours.

Functions that draw have the decorator `drawn`, which applies the style only within them. Figures
are drawn in the light palette; in files and pages, SVG changes to the reader's light or dark
(`saving`).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec

import numpy as np
from jaxtyping import Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from hopscope.display import Displayed
from hopscope.plots.formats import check_width

P = ParamSpec("P")

Columns = Literal[1, 2]
WIDTHS = {1: 3.35, 2: 6.9}
"""Widths of a small and a large figure in inches: one and both columns of a two-column paper."""
TEXT, SMALL = 8.0, 7.0
"""Size in points of text, and of small text (at ticks and points)."""
LETTER = 0.65 * SMALL / 72
"""Width of a letter of small text, in inches."""
KEY = 0.45
"""Inches of a legend's entry besides its text."""
LINES = 8
"""Number of colours of lines; after the last they repeat, dashed."""
DASHES = ("-", "--", "-.")
"""Styles of the first, second and third lines of a colour."""
SHADES = 12
"""Number of colours of the scale from early to late."""
BAND = 0.2
"""Opacity of a band from the lowest to the highest model."""


@dataclass(frozen=True)
class Palette:
    """Colours for one background; tests measure their contrast and distances."""

    lines: tuple[str, ...]
    dim: str
    faint: str
    paper: str
    ink: str
    times: tuple[str, str, str]
    """Early, middle, late; late has the least contrast to the background."""
    amounts: tuple[str, str, str]
    """Zero, half, one."""

    def cycle(self) -> tuple[str, ...]:
        """Return all colours; the same index has the same meaning in every palette."""
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


COLOURS = LIGHT.lines
"""The colours of lines and symbols, in this order."""
DIM, FAINT, PAPER, INK = LIGHT.dim, LIGHT.faint, LIGHT.paper, LIGHT.ink
"""Colours of secondary marks; of rules and backgrounds; of the paper; of text."""
STEP_COLOURS = LIGHT.cycle()[LINES + 4 : LINES + 4 + SHADES]
"""Colours from early to late."""
LOOK_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": TEXT,
    **dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.titlesize"), TEXT),
    **dict.fromkeys(("figure.labelsize", "legend.title_fontsize"), TEXT),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), SMALL),
    "text.color": INK,
    "axes.labelcolor": INK,
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), DIM),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), PAPER),
    **dict.fromkeys(("savefig.facecolor", "savefig.edgecolor"), PAPER),
    "axes.prop_cycle": f"cycler('color', {[*COLOURS]!r})",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "patch.edgecolor": INK,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    **dict.fromkeys(("xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    "legend.handlelength": 1.6,
    "pdf.fonttype": 42,  # several venues refuse the default, Type 3
    "svg.fonttype": "none",  # keeps text searchable and editable
}
"""The settings of matplotlib that make this style."""

_WIDTH: ContextVar[float | None] = ContextVar("width", default=None)


@contextmanager
def looking(width: float | None) -> Iterator[None]:
    """Draw figures within this block with this width in inches.

    None keeps the width of an outer block, or the default width of each figure.
    """
    check_width(width)
    token = _WIDTH.set(width or _WIDTH.get())
    try:
        yield
    finally:
        _WIDTH.reset(token)


class Picture(Displayed, Figure):
    """A figure with a name and a caption, which are shown next to it and not drawn into it."""

    def __init__(self, name: str, caption: str, size: tuple[float, float]) -> None:
        super().__init__(figsize=size, layout="constrained")
        self.name, self.caption = name, " ".join(caption.split())

    def draw(self, renderer: Any) -> None:
        """Draw in this style (matplotlib makes ticks only when it draws)."""
        with rc_context(LOOK_SETTINGS):
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save in this style (matplotlib reads settings of formats when it saves)."""
        with rc_context(LOOK_SETTINGS):
            super().savefig(*args, **options)


NamedPicture = tuple[str, Picture]
"""A short name, and a figure."""


def picture(name: str, caption: str, height: float, columns: Columns = 1) -> Picture:
    """Make a figure of this height in inches, as wide as `columns` (or as set by `looking`)."""
    return Picture(name, caption, (figure_width(columns), height))


def figure_width(columns: Columns) -> float:
    """Return the width in inches of a figure of so many columns (or the width set by `looking`)."""
    return _WIDTH.get() or WIDTHS[columns]


def line_style(number: int) -> dict[str, Any]:
    """Return the colour and the dashes of the line with this number."""
    dashes = DASHES[number // LINES % len(DASHES)]
    return {"color": COLOURS[number % LINES], "linestyle": dashes}


def legend_columns(figure: Picture, labels: Iterable[str], most: int) -> int:
    """Return how many columns of a legend below a figure fit for these labels, at most `most`."""
    entry = KEY + LETTER * max(map(len, labels), default=0)
    return min(most, max(1, int(figure.get_figwidth() / entry)))


def rotation(names: Iterable[str], room: float) -> int:
    """Return the angle of names under columns of this width in inches: 90 if they do not fit."""
    return 90 if LETTER * max(map(len, names), default=0) > room else 0


def drawn(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """Decorate a function so that it draws in this style."""

    @wraps(draw)
    def draws(*args: P.args, **options: P.kwargs) -> Picture:
        with rc_context(LOOK_SETTINGS):
            return draw(*args, **options)

    return draws


def times() -> ListedColormap:
    """The colour map from early to late."""
    return ListedColormap(STEP_COLOURS)


def amounts() -> LinearSegmentedColormap:
    """The colour map from 0 to 1."""
    return LinearSegmentedColormap.from_list("amounts", LIGHT.amounts)


def shade(axes: Axes, values: Float[np.ndarray, "row column"], **options: Any) -> AxesImage:
    """Draw values from 0 to 1 as a map that fills the axes; other values have the colour of the
    nearer end, and NaN is grey.
    """
    axes.set_facecolor(FAINT)
    return axes.imshow(values, cmap=amounts(), vmin=0, vmax=1, aspect="auto", **options)


def band(
    axes: Axes,
    x: np.ndarray,
    values: Float[np.ndarray, "model x"],
    colour: str,
    label: str | None = None,
    linestyle: str = "-",
) -> None:
    """Draw the mean over models, and a band from the lowest to the highest if there are several.

    A line of one point is a dot.
    """
    if len(values) > 1:
        axes.fill_between(x, values.min(0), values.max(0), color=colour, alpha=BAND, linewidth=0)
    mark = "o" if len(x) == 1 else None
    axes.plot(x, values.mean(0), color=colour, label=label, linestyle=linestyle, marker=mark)
