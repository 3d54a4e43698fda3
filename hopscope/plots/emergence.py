"""Figures of emergence: attention along each path, and losses (figures 6, 7, appendix D)."""

from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from hopscope.circuits.emergence import Emergence
from hopscope.facts import symbol_name
from hopscope.milestones import HALF
from hopscope.plots.curves import end_losses
from hopscope.plots.look import (
    COLOURS,
    DIM,
    FAINT,
    INK,
    PAPER,
    SMALL,
    Picture,
    amounts,
    drawn,
    line_style,
    picture,
)
from hopscope.plots.symbols import role_legend, short_role
from hopscope.plots.words import learned_hops
from hopscope.theory import Path

ROW = 0.15
"""Height of a path's row, in inches."""
KEYS = 8
"""The most entries in a column of the legend of losses."""
ROOM = 1.15
"""Length of the axis, in multiples of that up to the last event."""
WIDE = 8
"""The axis is logarithmic if the last event is more than this many times as late as the first."""
FAR = 30
"""With a larger ratio than this, only 10, 100, 1,000 and so on are labelled."""
Span = tuple[int | float, int | float, int | float]
"""The checkpoint before the step of an event, that step, and the checkpoint after."""


@drawn
def emergence_figure(story: Emergence, of: str = "") -> Picture:
    """Draw the attention along every path (above, a row each) and the loss of each hop (below)."""
    rows = len(story.order)
    figure = picture(
        of or "when each path appeared",
        f"{_paths(story)} the loss of each hop at the same steps; dotted: chance, as a mean of "
        f"hops.{_means(story)} {_roles(story)}",
        ROW * rows + 2.0,
        columns=2,
    )
    if rows:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(ROW * rows + 0.1, 1.0))
        _heat(figure, above, story)
    else:
        below = figure.subplots()
    for number, hop in enumerate(story.asked):
        losses, name = story.losses[:, number], symbol_name(f"x{hop}")
        below.plot(story.steps, losses, label=name, **line_style(number))
    end_losses(figure, [below], [story.chance])
    below.axhline(story.chance, color=DIM, linestyle=":", label="chance")
    below.set(xlabel="step", ylabel="loss")
    below.set_xlim(story.steps[0], story.steps[-1])
    columns = ceil((len(story.asked) + 1) / KEYS)
    below.legend(loc="upper left", bbox_to_anchor=(1, 1.1), ncols=columns)
    return figure


def _paths(story: Emergence) -> str:
    """Return the part of the caption about paths, up to that about losses."""
    if not story.order:
        return "No path of the circuit applies in these examples, so only losses are shown:"
    return (
        "Above: mean attention along each path of the circuit (layer.head: source → destination), "
        f"in the order in which they emerged; a mark where attention passes {HALF:g}. Below:"
    )


def _means(story: Emergence) -> str:
    """Return the part of the caption about examples; empty if their number is unknown."""
    return "" if story.examples is None else f" Means over {story.examples:,} examples."


def _heat(figure: Picture, axes: Axes, story: Emergence) -> None:
    """Draw a row per path: its attention at every checkpoint."""
    order = [path for path, _ in story.order][::-1]
    steps = np.array(story.steps, float)
    middles = (steps[1:] + steps[:-1]) / 2
    edges = [steps[0], *middles, steps[-1] if len(steps) > 1 else steps[0] + 1]
    values = np.stack([story.attention[story.paths.index(path)] for path in order])
    shown = axes.pcolormesh(
        edges,
        np.arange(len(order) + 1) - 0.5,
        values,
        cmap=amounts(),
        vmin=0,
        vmax=1,
        rasterized=True,
    )
    for row, path in enumerate(order):
        if (step := story.emerged(path)) is not None:
            axes.plot([step], [row], "D", color=COLOURS[1], markeredgecolor=PAPER, markersize=4)
    axes.hlines(np.arange(1, len(order)) - 0.5, steps[0], steps[-1], color=PAPER, linewidth=1)
    axes.set_yticks(range(len(order)), [label(path) for path in order])
    axes.tick_params(axis="y", length=0)
    bar = figure.colorbar(shown, ax=axes, pad=0.01, aspect=max(4, 2 * len(order)))
    bar.set_label("attention")


@drawn
def order_figure(story: Emergence, of: str = "") -> Picture:
    """Draw figure 7, right: when paths passed one half, and when hops were learned (if known)."""
    rows = _events(story)
    figure = picture(
        of or "in which order",
        f"The step at which attention along each path (layer.head: source → destination) passed "
        f"{HALF:g} (dots; bars: between which checkpoints), and at which each hop was learned "
        f"(diamonds).{_means(story)} {_roles(story)}",
        ROW * len(rows) + 0.75,
    )
    axes = figure.subplots()
    known = [step for _, span, _ in rows for step in span or () if step]  # 0: at the left end
    late, early = max(known, default=story.steps[-1]), min(known, default=1)
    if late > WIDE * early:
        axes.set_xscale("log")
        between = (1, 2, 5) if late <= FAR * early else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=between))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.minorticks_off()
    begin = min(story.steps[0], early) if late <= WIDE * early else early / 2
    axes.set_xlim(begin, begin + max(ROOM * (late - begin), 1))
    for row, (_, span, is_hop) in enumerate(rows):
        if span is None:
            axes.annotate("never", (begin, row), (3, 0), textcoords="offset points", va="center",
                          fontsize=SMALL, color=DIM)  # fmt: skip
            continue
        before, step, after = (max(each, begin) for each in span)
        axes.hlines(row, begin, step, color=FAINT, linewidth=1, zorder=0)
        colour, mark = (COLOURS[1], "D") if is_hop else (COLOURS[0], "o")
        axes.hlines(row, before, after, color=colour, linewidth=2, alpha=0.4, zorder=1)
        axes.plot(step, row, mark, color=colour, clip_on=False)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    for tick, (_, _, is_hop) in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(COLOURS[1] if is_hop else INK)
    axes.set_ylim(-0.6, max(1, len(rows)) - 0.4)
    axes.set_xlabel("step")
    if not rows:
        axes.text(0.5, 0.5, "nothing was measured", ha="center", transform=axes.transAxes)
    return figure


def _events(story: Emergence) -> list[tuple[str, Span | None, bool]]:
    """Return paths and hops, the last first, with their spans (None: never), and whether each is a
    hop. A hop's step is known exactly.
    """
    found: list[tuple[str, Span | None, bool]] = []
    for path, step in story.order:
        before, after = story.between(path) or (None, 0)
        span = None if step is None else (step if before is None else before, step, after)
        found.append((label(path), span, False))
    for hop, learned in learned_hops(story):
        span = None if learned is None else (learned, learned, learned)
        found.append((f"{symbol_name(f'x{hop}')} learned", span, True))
    found.sort(key=lambda event: (event[1] is None, event[1] and event[1][1]))
    return found[::-1]


def label(path: Path) -> str:
    """Return a path as a short text: layer.head: source → destination."""
    return f"{path.layer}.{path.head}: {short_role(path.source)} → {short_role(path.destination)}"


def _roles(story: Emergence) -> str:
    return role_legend([role for path in story.paths for role in (path.destination, path.source)])
