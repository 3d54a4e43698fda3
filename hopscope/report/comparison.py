"""The losses of two runs in one figure: a panel for each hop."""

from matplotlib.axes import Axes

from hopscope.errors import ConfigError
from hopscope.report.curves import FULL_SCALE, POINTS, WINDOW, smoothed, spread
from hopscope.report.look import COLOURS, DIM, Picture, drawn, picture, width
from hopscope.study.comparison import Comparison, Course

PANEL = 1.6
"""Inches of a panel, at least; more go below."""


@drawn
def comparison_figure(found: Comparison) -> Picture:
    """Training loss (smoothed) and validation loss (dots) of both; a band spans a fleet."""
    hops = found.hops
    if not hops:
        raise ConfigError(f"neither {found.names[0]} nor {found.names[1]} has losses to draw")
    across = min(int(width(2) / PANEL), len(hops))
    down = -(-len(hops) // across)
    figure = picture(
        "two runs",
        f"Loss of each hop during training, the mean of {WINDOW} {found.courses[0].unit}s; dots: "
        f"validation; bands: from the lowest to the highest of several models. {_told(found)}",
        0.9 + 1.5 * down,
        columns=2,
    )
    panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for hop, axes in zip(hops, panels, strict=False):
        for course, colour in zip(found.courses, COLOURS, strict=False):
            _draw(axes, course, hop, colour)
        axes.set_title(hop)
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
        dots = spread(course.checked)
        axes.plot(course.checked[dots], mean[dots], ".", color=colour)


def _levels(found: Comparison) -> list[tuple[float, str]]:
    """The levels of guessing, each with its colour: its run's, where they differ."""
    known = [
        (course.chance, colour)
        for course, colour in zip(found.courses, COLOURS, strict=False)
        if course.chance is not None
    ]
    alike = len({level for level, _ in known}) == 1
    return [(known[0][0], DIM)] if alike else known


def _told(found: Comparison) -> str:
    levels = _levels(found)
    if not levels:
        return ""
    whose = ", each in its run's colour" * (len(levels) > 1)
    ends = f" The axis ends at {FULL_SCALE:g} times the highest." * (max(levels)[0] > 0)
    return f"Dotted: guessing{whose}.{ends}"


def _label(figure: Picture, found: Comparison) -> None:
    """Axes, guessing levels (each in its run's colour where they differ) and who is who."""
    first, *_ = figure.axes
    levels = _levels(found)
    for axes in figure.axes:
        for level, colour in levels:
            axes.axhline(level, color=colour, linestyle=":", zorder=0)
    if levels:
        first.set_ylim(0, FULL_SCALE * (max(levels)[0] or 1.0))
    figure.supxlabel(found.courses[0].unit)
    figure.supylabel("loss (dots: validation)")
    lines = [
        first.plot([], [], color=colour, label=name)[0]
        for name, colour in zip(found.names, COLOURS, strict=False)
    ]
    lines += [
        first.plot([], [], color=colour, linestyle=":", label="guess")[0] for _, colour in levels
    ]
    figure.legend(handles=lines, loc="outside right upper")
