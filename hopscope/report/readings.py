"""Figures over readings and seeds: which claims hold under which reading, how many hops models of
each depth learn, and what the batch does to the plateau.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes

from hopscope.facts import symbol_name
from hopscope.papers.cost import in_flop
from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
from hopscope.papers.musat.circuit_judges import SOLVED
from hopscope.papers.musat.curriculum_claims import allowed, hops_of
from hopscope.papers.musat.reading_map import Tried
from hopscope.papers.musat.rows import LossRow
from hopscope.report.look import (
    COLOURS,
    DIM,
    FAINT,
    INK,
    PAPER,
    SMALL,
    Picture,
    amounts,
    drawn,
    picture,
)

DARK = 0.6
"""Share of the scale above which cells are so dark that white reads better."""
LETTERS = 22
"""Letters of a line beside the map."""
LINE = 0.36
"""Inches of a line of the map."""
CIRCLE = 55
"""Square points of a circle that stands for one model."""
MANY = 5
"""Sizes of batches whose names stand beside one another in a column."""


@drawn
def map_figure(found: Sequence[Tried]) -> Picture:
    """A line for each reading, the best first: what its models end at, and for how many of them
    each claim holds.
    """
    found = sorted(found, key=lambda one: fmean(row.loss for row in one.rows))
    trained = sorted({f"{one.steps:,} steps, {in_flop(one.flop)}" for one in found})
    figure = picture(
        "readings of the paper",
        "A line for each reading of the paper, the best first. Left: the final loss of each of its "
        f"models ({' or '.join(trained)} each). Right: for how many of them each claim holds; "
        "where nothing was learned, none does.",
        2.1 + LINE * len(found),
        columns=2,
    )
    ends, claims = figure.subplots(1, 2, sharey=True, width_ratios=(1, 2.4))
    _ends(ends, found)
    _held(claims, found)
    ends.set_yticks(range(len(found)), ["\n".join(wrap(one.reading, LETTERS)) for one in found])
    return figure


def _ends(axes: Axes, found: Sequence[Tried]) -> None:
    """Final losses, on a scale on which small ones can be told apart."""
    for line, one in enumerate(found):
        losses = [row.loss for row in one.rows]
        axes.plot(losses, [line] * len(losses), "o", color=COLOURS[0], alpha=0.7, markersize=4)
        axes.axhline(line, color=FAINT, linewidth=0.6, zorder=0)
    guess = found[0].rows[0].guess
    for loss, said, side in ((SOLVED, "paper", "right"), (guess, "guess", "center")):
        axes.axvline(loss, color=DIM, linestyle=":", linewidth=0.8)
        axes.text(loss, 1.01, said, transform=axes.get_xaxis_transform(), ha=side)
    axes.set(xscale="log", xlabel="loss at the end")
    axes.xaxis.set_major_formatter("{x:g}")


def _held(axes: Axes, found: Sequence[Tried]) -> None:
    names = [claim.id.removeprefix("musat/abc-") for claim in AS_WE_TAKE_IT]
    held = [[one.held(claim.judge) for claim in AS_WE_TAKE_IT] for one in found]
    shares = np.array(
        [[n / len(one.rows) for n in row] for one, row in zip(found, held, strict=True)]
    )
    axes.imshow(shares, cmap=amounts(), vmin=0, vmax=1, aspect="auto")
    for line, (one, row) in enumerate(zip(found, held, strict=True)):
        for column, count in enumerate(row):
            colour = PAPER if shares[line, column] > DARK else INK
            words = f"{count}/{len(one.rows)}"
            axes.text(column, line, words, ha="center", va="center", color=colour, fontsize=SMALL)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelleft=False)
    axes.spines[:].set_visible(False)


@drawn
def law_figure(rows: Sequence[LossRow]) -> Picture:
    """How many models of each depth know how many hops in the end, and the most that depth allows.

    A circle's area goes with the number of models.
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
    axes.step([*most], [*most.values()], where="mid", color=COLOURS[1], label="exact law")
    for (layers, hops), count in counts.items():
        axes.scatter(layers, hops, s=CIRCLE * count, color=COLOURS[0], alpha=0.5, linewidth=0)
        axes.text(layers, hops, str(count), ha="center", va="center", fontsize=SMALL)
    axes.scatter([], [], s=CIRCLE, color=COLOURS[0], alpha=0.5, linewidth=0, label="models")
    asked = len(rows[0].final)
    axes.margins(x=0.12)
    axes.set(xlabel="layers", ylabel="hops known in the end", xticks=[*most])
    axes.set_ylim(-0.6, asked + 0.6)
    axes.legend(loc="upper left")
    return figure


@drawn
def batch_figure(rows: Sequence[LossRow]) -> Picture:
    """When models learn each hop, and where they end, by the number of examples per step."""
    figure = picture(
        "what the batch does to the plateau",
        "Left: the step at which models learn each hop, by the number of examples per step. Right: "
        "the loss of each hop at the end.",
        2.6,
        columns=2,
    )
    when, end = figure.subplots(1, 2)
    for hop in range(len(rows[0].final)):
        name, colour = symbol_name(f"x{hop + 1}"), COLOURS[hop % len(COLOURS)]
        learned = [(row.batch, row.crossed[hop]) for row in rows if row.crossed[hop] is not None]
        when.plot(
            *zip(*learned, strict=True) if learned else ([], []), "o", color=colour, label=name
        )
        end.plot([row.batch for row in rows], [row.final[hop] for row in rows], "o", color=colour)
    for axes, what in ((when, "step at which the hop is learned"), (end, "loss at the end")):
        axes.set(xlabel="examples per step", ylabel=what, xscale="log", ylim=(0, None))
        batches = sorted({row.batch for row in rows}, reverse=True)
        named = batches[:: 1 + (len(batches) > MANY)]  # labels of all would overlap
        axes.set_xticks(batches, [f"{its}" if its in named else "" for its in batches])
        axes.minorticks_off()
    when.legend()
    return figure
