"""Figures of many trainings: final losses by number of layers, losses during training, which claims
hold for which variant, and how many hops models of each depth learn.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from hopscope.facts import symbol_name
from hopscope.papers.cost import in_flop
from hopscope.papers.musat.circuit_claims import SOLVED, VariantModels
from hopscope.papers.musat.curriculum_claims import LEARNED_LOSS, allowed, hops_of
from hopscope.papers.musat.rows import LossRow
from hopscope.plots.curves import course_panels, end_losses
from hopscope.plots.look import (
    COLOURS,
    DIM,
    FAINT,
    INK,
    LINES,
    PAPER,
    SMALL,
    NamedPicture,
    Picture,
    drawn,
    figure_width,
    line_style,
    picture,
    shade,
)
from hopscope.plots.symbols import counted

PANEL = 1.55
"""Least width of a panel of curves, in inches."""
D_LAYERS = 24
"""Number of layers that identifies transformer D."""
DARK_CELL = 0.6
"""Cells with a larger share have white text."""
LETTERS = 22
"""Letters in a line of labels at the map."""
LINE = 0.36
"""Height of a line of the map, in inches."""
CIRCLE, LARGEST = 55, 660
"""Area of a circle for one model, and of the largest circle, in square points."""
DEPTHS = 12
"""The most numbers of layers that are marked on an axis."""


def final_loss_figures(
    rows: Sequence[LossRow], courses: Sequence[LossRow] | None = None
) -> list[NamedPicture]:
    """Return figure 4, right: final losses by number of layers, and losses during training.

    `courses` are the rows of the second figure (default: all).
    """
    return [("layers", layers_figure(rows)), ("courses", courses_figure(courses or rows))]


def by_depth(
    rows: Sequence[LossRow], courses: Sequence[LossRow] | None = None
) -> list[NamedPicture]:
    """Return the figures of `final_loss_figures`, and the number of hops learned by depth."""
    return [*final_loss_figures(rows, courses), ("law", law_figure(rows))]


@drawn
def curriculum_figure(with_: Sequence[LossRow], without: Sequence[LossRow]) -> Picture:
    """Draw figure 4, left: final losses by number of layers, with and without curriculum."""
    figure = picture(
        "with and without implicit curriculum",
        "Final validation loss by the number of layers: a dot for each model, a line through the "
        "means; dotted: chance.",
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
    _mark(axes, [*with_, *without])
    axes.axhline(without[0].chance, color=DIM, linestyle=":", label="chance")
    axes.set(xlabel="layers", ylabel="final validation loss, all hops", ylim=(0, None))
    axes.legend()
    return figure


@drawn
def layers_figure(rows: Sequence[LossRow]) -> Picture:
    names = _hops(rows[0])
    figure = picture(
        f"final loss of each hop, D = {rows[0].hops}",
        "Final validation loss of each hop by the number of layers: a dot for each model, a line "
        "through the means; dotted: chance.",
        3.0,
    )
    axes = figure.subplots()
    depths = sorted({row.layers for row in rows})
    for hop, name in enumerate(names):
        means = [_mean(row.final[hop] for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, means, marker="o", label=name, **line_style(hop))
        for row in rows:
            axes.plot(row.layers, row.final[hop], ".", alpha=0.4, color=COLOURS[hop % LINES])
    if len(names) > 1:
        totals = [_mean(row.loss for row in rows if row.layers == d) for d in depths]
        axes.plot(depths, totals, "--", color=INK, label="all hops")
    axes.axhline(rows[0].chance, color=DIM, linestyle=":", label="chance")
    highest = max(rows[0].chance, *(max(row.final) for row in rows))
    axes.set(xlabel="layers", ylabel="final validation loss")
    _mark(axes, rows)
    axes.set_ylim(0, 1.1 * highest)
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _mark(axes: Axes, rows: Iterable[LossRow]) -> None:
    """Mark every number of layers, or every second one (or third, …) if there are many."""
    depths = sorted({row.layers for row in rows})
    axes.set_xticks(depths[:: -(-len(depths) // DEPTHS)])


@drawn
def courses_figure(rows: Sequence[LossRow]) -> Picture:
    """Draw the loss of every hop during training, a panel per model."""
    across = min(int(figure_width(2) / PANEL), len(rows))
    down = -(-len(rows) // across)
    figure = picture(
        "losses during training",
        f"Validation loss of each hop, a panel for each model; dotted: {LEARNED_LOSS:g}, below "
        f"which a hop is learned. Faint: training losses.",
        1.3 * down + 0.8,
        columns=2,
    )
    panels = course_panels(figure, len(rows), across, "step")
    for axes, row in zip(panels, rows, strict=True):
        _course(axes, row)
    end_losses(figure, panels, [row.chance for row in rows])
    for axes in panels:
        axes.axhline(LEARNED_LOSS, color=DIM, linestyle=":", linewidth=0.8)
    figure.supylabel("loss")
    known = [axes.get_legend_handles_labels() for axes in panels]
    most = max(known, key=lambda found: len(found[0]))
    figure.legend(*most, loc="outside lower center", ncols=8 if across > 2 else 4)
    return figure


def _course(axes: Axes, row: LossRow) -> None:
    """Draw the validation losses of a model, and its training losses faintly."""
    course = row.course
    for number, name in enumerate(_hops(row)):
        style = line_style(number)
        axes.plot(course.steps, course.train[number], alpha=0.35, linewidth=0.8, **style)
        axes.plot(course.steps, course.losses[number], linewidth=1, label=name, **style)
    axes.set_title(model_name(row))


def model_name(row: LossRow) -> str:
    """Return a model's layers and seed; for transformer D a second line names the variant."""
    lines = [f"{counted(row.layers, 'layer')}, seed {row.seed}"]
    if row.layers == D_LAYERS:
        reading = ["fan-in"] * (row.init == "fan-in") + ["per pair"] * (row.position == "pair")
        lines += [f"{row.examples:,} examples", *filter(None, [", ".join(reading)])]
    return "\n".join(lines)


def _hops(row: LossRow) -> list[str]:
    """Return the names of a row's losses: the asked symbols."""
    return [symbol_name(f"x{hop}") for hop in row.asked]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


@drawn
def map_figure(found: Sequence[VariantModels]) -> Picture:
    """Draw a line for each variant, the best first: the final losses of its models, and for how
    many of them each claim holds.
    """
    found = sorted(found, key=lambda one: fmean(row.loss for row in one.rows))
    trained = sorted({f"{one.steps:,} steps, {in_flop(one.flop)}" for one in found})
    figure = picture(
        "variants of what the paper leaves open",
        "A line for each variant, the best first. Left: the final loss of each of its "
        f"models ({' or '.join(trained)} each). Right: for how many of them each claim holds; "
        "where nothing was learned, none does.",
        2.1 + LINE * len(found),
        columns=2,
    )
    ends, claims = figure.subplots(1, 2, sharey=True, width_ratios=(1, 2.4))
    _ends(ends, found)
    _held(claims, found)
    ends.set_yticks(range(len(found)), ["\n".join(wrap(one.variant, LETTERS)) for one in found])
    return figure


def _ends(axes: Axes, found: Sequence[VariantModels]) -> None:
    """Draw final losses on a logarithmic scale."""
    for line, one in enumerate(found):
        losses = [row.loss for row in one.rows]
        axes.plot(losses, [line] * len(losses), "o", color=COLOURS[0], alpha=0.7, markersize=4)
        axes.axhline(line, color=FAINT, linewidth=0.6, zorder=0)
    chance = found[0].rows[0].chance
    for loss, said, side in ((SOLVED, "paper", "right"), (chance, "chance", "center")):
        axes.axvline(loss, color=DIM, linestyle=":", linewidth=0.8)
        axes.text(loss, 1.01, said, transform=axes.get_xaxis_transform(), ha=side)
    axes.set(xscale="log", xlabel="loss at the end")
    axes.xaxis.set_major_formatter("{x:g}")


def _held(axes: Axes, found: Sequence[VariantModels]) -> None:
    right = [one.right() for one in found]
    names = [name.removeprefix("musat/abc-") for name in right[0]]
    held = [[*each.values()] for each in right]
    shares = np.array(
        [[n / len(one.rows) for n in row] for one, row in zip(found, held, strict=True)]
    )
    shade(axes, shares)
    for line, (one, row) in enumerate(zip(found, held, strict=True)):
        for column, count in enumerate(row):
            colour = PAPER if shares[line, column] > DARK_CELL else INK
            words = f"{count}/{len(one.rows)}"
            axes.text(column, line, words, ha="center", va="center", color=colour, fontsize=SMALL)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelleft=False)
    axes.spines[:].set_visible(False)


@drawn
def law_figure(rows: Sequence[LossRow]) -> Picture:
    """Draw how many models of each depth learned how many hops, and the most that depth allows.

    A circle's area is proportional to the number of models.
    """
    counts = Counter((row.layers, hops_of(row)) for row in rows)
    most = {row.layers: allowed(row) for row in sorted(rows, key=lambda row: row.layers)}
    steps = " or ".join(f"{steps:,}" for steps in sorted({row.steps for row in rows}))
    figure = picture(
        "hops known, by depth",
        f"How many models of each depth know how many hops in the end, after {steps} steps (a "
        "circle's area goes with their number, which stands in it), and the most that so many "
        "layers allow.",
        2.6,
    )
    axes = figure.subplots()
    one = min(CIRCLE, LARGEST / max(counts.values()))
    dot = "o" if len(most) == 1 else None  # steps of one depth have no width
    axes.step(
        [*most], [*most.values()], where="mid", color=COLOURS[1], label="exact law", marker=dot
    )
    for (layers, hops), count in counts.items():
        axes.scatter(layers, hops, s=one * count, color=COLOURS[0], alpha=0.5, linewidth=0)
        axes.text(layers, hops, str(count), ha="center", va="center", fontsize=SMALL)
    axes.scatter([], [], s=one, color=COLOURS[0], alpha=0.5, linewidth=0, label="models")
    asked = len(rows[0].final)
    axes.margins(x=0.12)
    axes.set(xlabel="layers", ylabel="hops known in the end")
    _mark(axes, rows)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(-0.6, asked + 0.6)
    axes.legend(loc="upper left")
    return figure
