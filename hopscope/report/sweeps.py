"""Figures of many trainings: where they end by the number of layers, and how they came there."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes

from hopscope.facts import symbol_name
from hopscope.papers.musat.curriculum_claims import LEARNED
from hopscope.papers.musat.rows import LossRow
from hopscope.report.curves import FULL_SCALE
from hopscope.report.look import COLOURS, DIM, INK, LINES, Picture, drawn, picture, width
from hopscope.report.readings import law_figure
from hopscope.report.symbols import counted

Drawn = tuple[str, Picture]
"""A short name, and a figure."""
PANEL = 1.55
"""Inches of a panel of courses, at least."""
D_LAYERS = 24
"""The number of layers by which transformer D is recognised."""


def final_losses(rows: Sequence[LossRow], courses: Sequence[LossRow] | None = None) -> list[Drawn]:
    """Figure 4, right: final losses by number of layers, and how they, or some, came about."""
    return [("layers", layers_figure(rows)), ("courses", courses_figure(courses or rows))]


def by_depth(rows: Sequence[LossRow], courses: Sequence[LossRow] | None = None) -> list[Drawn]:
    """The same, and how many hops each model learned, beside the exact law."""
    return [*final_losses(rows, courses), ("law", law_figure(rows))]


@drawn
def curriculum_figure(with_: Sequence[LossRow], without: Sequence[LossRow]) -> Picture:
    """Figure 4, left."""
    figure = picture(
        "with and without implicit curriculum",
        "Final validation loss by the number of layers: a dot for each model, a line through the "
        "means; dotted: guessing.",
        2.6,
    )
    axes = figure.subplots()
    for colour, (name, rows) in zip(COLOURS, (("with", with_), ("without", without)), strict=False):
        ends: dict[int, list[float]] = {}
        for row in rows:
            ends.setdefault(row.layers, []).append(row.loss)
            axes.plot(row.layers, row.loss, ".", alpha=0.4, color=colour)
        depths = sorted(ends)
        label = f"{name} curriculum, D = {rows[0].hops}"
        axes.plot(depths, [_mean(ends[depth]) for depth in depths], "o-", color=colour, label=label)
    axes.axhline(without[0].guess, color=DIM, linestyle=":", label="guess")
    axes.set(xlabel="layers", ylabel="final validation loss, all hops", ylim=(0, None))
    axes.legend()
    return figure


@drawn
def layers_figure(rows: Sequence[LossRow]) -> Picture:
    names = _hops(rows[0])
    figure = picture(
        f"final loss of each hop, D = {rows[0].hops}",
        "Final validation loss of each hop by the number of layers: a dot for each model, a line "
        "through the means; dotted: guessing.",
        3.0,
    )
    axes = figure.subplots()
    depths = sorted({row.layers for row in rows})
    for hop, name in enumerate(names):
        means = [_mean(row.final[hop] for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, means, "o-", color=COLOURS[hop % LINES], label=name)
        for row in rows:
            axes.plot(row.layers, row.final[hop], ".", alpha=0.4, color=COLOURS[hop % LINES])
    if len(names) > 1:
        totals = [_mean(row.loss for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, totals, "--", color=INK, label="all hops")
    axes.axhline(rows[0].guess, color=DIM, linestyle=":", label="guess")
    highest = max(rows[0].guess, *(max(row.final) for row in rows))
    axes.set(xlabel="layers", ylabel="final validation loss", xticks=depths)
    axes.set_ylim(0, 1.1 * highest)
    figure.legend(loc="outside lower center", ncols=4)
    return figure


@drawn
def courses_figure(rows: Sequence[LossRow]) -> Picture:
    """The loss of every hop during training, a panel per model."""
    across = min(int(width(2) / PANEL), len(rows))
    down = -(-len(rows) // across)
    trained = " Faint: training losses." if any(row.course.train for row in rows) else ""
    figure = picture(
        "losses during training",
        f"Validation loss of each hop, a panel for each model; dotted: {LEARNED:g}, below which a "
        f"hop is learned.{trained}",
        1.3 * down + 0.8,
        columns=2,
    )
    panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, row in zip(panels, rows, strict=False):
        _course(axes, row)
    for axes in panels[len(rows) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(rows) - across) : len(rows)]:
        axes.tick_params(labelbottom=True)  # what is below it may be empty
        axes.set_xlabel("step")
    figure.supylabel("loss")
    known = [axes.get_legend_handles_labels() for axes in panels]
    most = max(known, key=lambda found: len(found[0]))
    figure.legend(*most, loc="outside lower center", ncols=8 if across > 2 else 4)
    return figure


def _course(axes: Axes, row: LossRow) -> None:
    """Validation in full, training faint (where the row has it)."""
    course = row.course
    for number, name in enumerate(_hops(row)):
        colour = COLOURS[number % LINES]
        if course.train is not None:
            axes.plot(course.steps, course.train[number], color=colour, alpha=0.35, linewidth=0.8)
        axes.plot(course.steps, course.losses[number], color=colour, linewidth=1, label=name)
    axes.axhline(LEARNED, color=DIM, linestyle=":", linewidth=0.8)
    axes.set_ylim(0, FULL_SCALE * row.guess)
    axes.set_title(model_name(row))


def model_name(row: LossRow) -> str:
    """Layers and seed; of transformer D, which comes in several readings, the reading below."""
    told = [f"{counted(row.layers, 'layer')}, seed {row.seed}"]
    if row.layers == D_LAYERS:
        reading = ["fan-in"] * (row.init == "fan-in") + ["per pair"] * (row.position == "pair")
        told += [f"{row.examples:,} examples", *filter(None, [", ".join(reading)])]
    return "\n".join(told)


def _hops(row: LossRow) -> list[str]:
    """What the losses of a row are of."""
    return [symbol_name(f"x{hop}") for hop in row.asked]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
