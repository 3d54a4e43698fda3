"""Figures of losses during training: of one run, and of two runs side by side."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from hopscope.errors import ConfigError
from hopscope.facts import symbol_name
from hopscope.plots.look import (
    COLOURS,
    DIM,
    LINES,
    Picture,
    band,
    drawn,
    figure_width,
    legend_columns,
    line_style,
    picture,
)
from hopscope.plots.names import run_title
from hopscope.study.comparison import Comparison
from hopscope.training import Run

SMOOTHED_STEPS = 25
"""Steps over which a drawn curve is smoothed; `milestones` decides when a hop is learned."""
POINTS = 500
"""A longer curve is thinned to this many points, or up to twice as many."""
DOTS = 50
"""Largest number of validation losses that are drawn (a training has many at its end)."""
FULL_SCALE = 1.6
"""Height of an axis of losses, in multiples of chance; the first steps may exceed it."""
INSIDE, ACROSS = 6, 4
"""The most hops whose legend is within the axes, and the columns of a legend below them."""
PANEL = 1.6
"""Least width of a panel of two runs, in inches."""
LossCurves = Float[np.ndarray, "step model"]


@drawn
def loss_curves(run: Run) -> Picture:
    """Training loss (smoothed) and validation loss of every hop; a band spans a fleet."""
    (steps, losses), (checked, validation) = run.losses("train"), run.losses("validation")
    if not len(steps) and not len(checked):
        raise ConfigError(f"{run.name} has no losses to draw")
    several, levels = len(run.recipe.seeds) > 1, run.recipe.task.chances()
    many, rows = len(levels) > INSIDE, ceil((len(levels) + 1) / ACROSS)
    band = " Bands: from the lowest to the highest of the models." if several else ""
    figure = picture(
        run_title(run.folder),
        f"Loss of each hop during training, the mean of {SMOOTHED_STEPS} steps; dots: validation. "
        f"Dotted: chance, in the colour of its hop where hops differ.{band}",
        2.2 + (0.15 * rows if many else 0),
    )
    axes = figure.subplots()
    for hop, number in enumerate(run.recipe.task.asked_hops()):
        colour, dashes = line_style(hop).values()
        _curve(axes, steps, losses[:, :, hop], colour, symbol_name(f"x{number}"), dashes)
        _dots(axes, checked, validation[:, :, hop], colour)
    end_losses(figure, [axes], levels)
    if len(set(levels)) == 1:
        axes.axhline(levels[0], color=DIM, linestyle=":", label="chance")
    else:
        for hop, level in enumerate(levels):
            axes.axhline(level, color=COLOURS[hop % LINES], linestyle=":")
        axes.plot([], [], color=DIM, linestyle=":", label="chance")
    axes.set(xlabel="step", ylabel="loss", xlim=(0, None))
    if many:
        figure.legend(loc="outside lower center", ncols=ACROSS)
    else:
        axes.legend(loc="best")  # the upper right, unless curves are there
    return figure


@drawn
def comparison_figure(found: Comparison) -> Picture:
    """The losses of two runs, a panel for each hop and a colour for each run."""
    hops = found.hops
    if not hops:
        raise ConfigError(f"neither {found.names[0]} nor {found.names[1]} has losses to draw")
    across = min(int(figure_width(2) / PANEL), len(hops))
    down = -(-len(hops) // across)
    figure = picture(
        "two runs",
        f"Loss of each hop during training, the mean of {SMOOTHED_STEPS} {found.courses[0].unit}s; "
        "dots: validation; bands: from the lowest to the highest of several models; dotted: "
        "chance, in the colour of its run where they differ.",
        0.9 + 1.5 * down,
        columns=2,
    )
    panels = course_panels(figure, len(hops), across, found.courses[0].unit)
    levels: dict[str, dict[float, str]] = {hop: {} for hop in hops}
    for hop, axes in zip(hops, panels, strict=True):
        for course, colour in zip(found.courses, COLOURS, strict=False):
            if hop in course.hops:
                column = course.hops.index(hop)
                _curve(axes, course.steps, course.train[:, :, column], colour)
                _dots(axes, course.checked, course.validation[:, :, column], colour)
                if course.chances:
                    levels[hop].setdefault(course.chances[column], colour)
        axes.set_title(hop)
    _label(figure, found, [*levels.values()])
    return figure


def course_panels(figure: Picture, count: int, across: int, unit: str) -> list[Axes]:
    """Return `count` panels with shared axes, `across` in a row; the lowest have the unit."""
    down = -(-count // across)
    every = [*figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat]
    for axes in every[count:]:
        axes.remove()
    for axes in every[count - across : count]:
        axes.tick_params(labelbottom=True)  # also without a panel below
        axes.set_xlabel(unit)
    return every[:count]


def _label(figure: Picture, found: Comparison, levels: Sequence[dict[float, str]]) -> None:
    """Draw labels of axes, levels of chance (for each panel, by colour), and the legend."""
    first, *_ = figure.axes
    if any(levels):
        end_losses(figure, figure.axes, [level for each in levels for level in each])
    chances = [
        axes.axhline(level, color=colour if len(each) > 1 else DIM, linestyle=":", zorder=0)
        for axes, each in zip(figure.axes, levels, strict=True)
        for level, colour in each.items()
    ]
    figure.supylabel("loss (dots: validation)")
    lines = [
        first.plot([], [], color=colour, label=name)[0]
        for name, colour in zip(found.names, COLOURS, strict=False)
    ]
    lines += [
        first.plot([], [], color=colour, linestyle=":", label="chance")[0]
        for colour in dict.fromkeys(line.get_color() for line in chances)
    ]
    columns = legend_columns(figure, found.names, 4)
    figure.legend(handles=lines, loc="outside lower center", ncols=columns)


def end_losses(figure: Picture, panels: Sequence[Axes], levels: Sequence[float]) -> None:
    """End the axis of losses above chance and the lowest drawn loss; the caption says where."""
    losses = [y for axes in panels for line in axes.lines for y in np.asarray(line.get_ydata())]
    lowest = min(filter(np.isfinite, losses), default=0.0)
    top = FULL_SCALE * float(max(max(levels, default=0.0) or 1.0, lowest))
    for axes in panels:
        axes.set_ylim(0, top)
    figure.caption += f" The axis of losses ends at {top:.3g}."


def _curve(
    axes: Axes,
    steps: np.ndarray,
    losses: LossCurves,
    colour: str,
    label: str | None = None,
    linestyle: str = "-",
) -> None:
    """Draw smoothed losses: the mean over models, and a band if there are several."""
    if not len(steps):
        return
    shown = slice(None, None, max(1, len(steps) // POINTS))
    band(axes, steps[shown], smoothed(losses)[shown].T, colour, label, linestyle)


def _dots(axes: Axes, steps: Int[np.ndarray, "step"], losses: LossCurves, colour: str) -> None:
    """Draw the mean over models at up to DOTS of these steps, evenly spaced."""
    if len(steps):
        dots = np.unique(np.searchsorted(steps, np.linspace(steps[0], steps[-1], DOTS)))
        axes.plot(steps[dots], losses[dots].mean(1), ".", color=colour)


def smoothed(losses: LossCurves) -> LossCurves:
    """The mean over the last SMOOTHED_STEPS steps."""
    sums = np.cumsum(losses, axis=0, dtype=float)
    sums[SMOOTHED_STEPS:] -= sums[:-SMOOTHED_STEPS].copy()
    return sums / np.minimum(np.arange(1, len(losses) + 1), SMOOTHED_STEPS)[:, None]
