"""The losses of two runs in one figure: a panel for each hop."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopscope.errors import ConfigError
from hopscope.report.curves import COLOURS, FULL_SCALE, POINTS, smoothed
from hopscope.study.comparison import Comparison, Course

GREY = "#999999"
ACROSS = 3
"""Panels beside one another; more go below."""


def comparison_figure(found: Comparison) -> Figure:
    """Training loss (smoothed) and validation loss (dots) of both; a band spans a fleet."""
    hops = found.hops
    if not hops:
        raise ConfigError(f"neither {found.names[0]} nor {found.names[1]} has losses to draw")
    across, down = min(ACROSS, len(hops)), -(-len(hops) // ACROSS)
    figure = Figure(figsize=(1.2 + 3.2 * across, 0.9 + 2.7 * down), layout="constrained")
    panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for hop, axes in zip(hops, panels, strict=False):
        for course, colour in zip(found.courses, COLOURS, strict=False):
            _draw(axes, course, hop, colour)
        axes.set_title(hop)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(hops) - across : len(hops)]:
        axes.tick_params(labelbottom=True)  # there may be none below
    for axes in panels[len(hops) :]:
        axes.remove()
    _label(figure, found)
    return figure


def _draw(axes: Axes, course: Course, hop: str, colour: str) -> None:
    """One loss of one run, if it has this loss."""
    if hop not in course.hops:
        return
    column = course.hops.index(hop)
    losses = smoothed(course.train)[:, :, column]
    shown = slice(None, None, max(1, len(course.steps) // POINTS))
    steps, losses = course.steps[shown], losses[shown]
    if losses.shape[1] > 1:
        axes.fill_between(steps, losses.min(1), losses.max(1), color=colour, alpha=0.2, linewidth=0)
    axes.plot(steps, losses.mean(1), color=colour)
    if len(course.checked):
        mean = course.validation[:, :, column].mean(1)
        dots = slice(None, None, max(1, len(mean) // (POINTS // 10)))
        axes.plot(course.checked[dots], mean[dots], ".", color=colour, markersize=3)


def _label(figure: Figure, found: Comparison) -> None:
    """Axes, guessing levels (each in its run's colour where they differ) and who is who."""
    first, *_ = figure.axes
    levels = [course.guess for course in found.courses if course.guess is not None]
    colours = (GREY,) if len(set(levels)) == 1 else COLOURS
    for axes in figure.axes:
        for level, colour in zip(levels, colours, strict=False):
            axes.axhline(level, color=colour, linestyle=":", zorder=0)
    if levels:
        first.set_ylim(0, FULL_SCALE * max(levels))
    figure.supxlabel(found.courses[0].unit, fontsize="medium")
    figure.supylabel("loss (dots: validation)", fontsize="medium")
    lines = [
        first.plot([], [], color=colour, label=course.name)[0]
        for course, colour in zip(found.courses, COLOURS, strict=False)
    ]
    if levels:
        lines.append(first.plot([], [], color=GREY, linestyle=":", label="guess")[0])
    figure.legend(handles=lines, loc="outside upper center", ncols=1, frameon=False)
