"""Emergence as pictures: attention along each path, and losses (figures 6, 7, appendix D)."""

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from hopscope.circuits.emergence import Emergence
from hopscope.milestones import HALF
from hopscope.report.curves import COLOURS, FULL_SCALE
from hopscope.report.depth import short_role
from hopscope.theory import Path

PATHS = "tab20"
LABEL = 0.35
"""Height of a hop's label, in bars."""
ROOM = 1.15
"""Length of the axis, in times of the last event."""


def emergence_figure(story: Emergence) -> Figure:
    """Above: attention along every path. Below: the loss of each hop, at the same steps."""
    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for number, (path, _) in enumerate(story.order):
        values = story.attention[story.paths.index(path)]
        above.plot(story.steps, values, color=_colour(number), label=label(path), linewidth=1.4)
    above.axhline(HALF, color="#999999", linestyle=":")
    above.set(ylabel="mean attention", ylim=(0, 1.02))
    above.legend(fontsize=6.5, ncols=2, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    for hop in range(story.losses.shape[1]):
        below.plot(
            story.steps, story.losses[:, hop], color=COLOURS[hop % len(COLOURS)],
            label=f"$x_{{{hop + 1}}}$",
        )  # fmt: skip
    below.axhline(story.guess, color="#999999", linestyle=":", label="guess")
    below.set(xlabel="step", ylabel="loss", ylim=(0, FULL_SCALE * story.guess))
    below.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def order_figure(story: Emergence) -> Figure:
    """Figure 7, right: when each path passed one half, and, if known, when hops were learned."""
    order = story.order[::-1]
    hops = len(story.learned_at or ())
    figure = Figure(figsize=(6.4, 0.26 * (len(order) + hops) + 0.9), layout="constrained")
    axes = figure.subplots()
    for row, (_, step) in enumerate(order):
        _bar(axes, row, step, story, _colour(len(order) - 1 - row))
    for hop, step in enumerate(story.learned_at or ()):
        if step is not None:
            axes.axvline(step, color=COLOURS[hop % len(COLOURS)], linestyle="--", linewidth=1)
            height = len(order) - 0.3 + LABEL * (hop % 3)
            axes.text(step, height, f"$x_{{{hop + 1}}}$", fontsize=8, ha="center")
    axes.set_yticks(range(len(order)), [label(path) for path, _ in order], fontsize=7)
    axes.set(xlabel="step at which attention passed 0.5 (dashed: a hop was learned)")
    axes.set_xlim(0, min(story.steps[-1], ROOM * max(_moments(story), default=story.steps[-1])))
    axes.set_ylim(-0.6, len(order) + 3 * LABEL)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _moments(story: Emergence) -> list[float]:
    """All steps at which something happened."""
    every = (*(step for _, step in story.order), *(story.learned_at or ()))
    return [float(step) for step in every if step]


def _bar(axes: Axes, row: int, step: float | None, story: Emergence, colour: str) -> None:
    if step is None:
        axes.text(story.steps[-1] * 0.01, row, "never", fontsize=7, va="center", color="#777777")
    else:
        axes.barh(row, step, height=0.62, color=colour)


def label(path: Path) -> str:
    """A path in a few characters, read from source to reader."""
    return f"{path.layer}.{path.head}: {short_role(path.reader)} ← {short_role(path.source)}"


def _colour(number: int) -> str:
    return to_hex(colormaps[PATHS](number % 20))
