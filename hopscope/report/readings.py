"""Figures over readings and seeds: which claims hold under which reading, how many hops models of
each depth learn, and what the batch does to the plateau.
"""

from collections import Counter
from collections.abc import Sequence
from textwrap import wrap

import numpy as np

from hopscope.papers.cost import in_flop
from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
from hopscope.papers.musat.curriculum_claims import allowed, hops_of
from hopscope.papers.musat.reading_map import Tried
from hopscope.papers.musat.rows import LossRow
from hopscope.report.look import COLOURS, INK, PAPER, SMALL, Picture, amounts, drawn, picture
from hopscope.report.symbols import symbol_name

DARK = 0.6
"""Share of the scale above which cells are so dark that white reads better."""
LETTERS = 22
"""Letters of a line beside the map, so that there is room for the map in one column."""
CIRCLE = 55
"""Square points of a circle that stands for one model."""


@drawn
def map_figure(found: Sequence[Tried]) -> Picture:
    """A line for each reading, a column for each claim: for how many models it holds."""
    claims = [claim.id.removeprefix("musat/abc-") for claim in AS_WE_TAKE_IT]
    held = [[one.held(claim.judge) for claim in AS_WE_TAKE_IT] for one in found]
    shares = np.array(
        [[n / len(one.rows) for n in row] for one, row in zip(found, held, strict=True)]
    )
    figure = picture(
        "claims under each reading of the paper",
        "For how many models each claim holds (column) under each reading of the paper (row), with "
        "the steps, the cost and the final losses of its models.",
        2.2 + 0.6 * len(found),
        columns=2,
    )
    axes = figure.subplots()
    shown = axes.imshow(shares, cmap=amounts(), vmin=0, vmax=1, aspect="auto")
    for line, (one, row) in enumerate(zip(found, held, strict=True)):
        for column, count in enumerate(row):
            colour = PAPER if shares[line, column] > DARK else INK
            words = f"{count}/{len(one.rows)}"
            axes.text(column, line, words, ha="center", va="center", color=colour, fontsize=SMALL)
    axes.set_xticks(range(len(claims)), claims, rotation=90)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(found)), list(map(told, found)))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(shown, ax=axes, label="share of models", pad=0.01)
    return figure


def told(one: Tried) -> str:
    """A reading, and what a model under it ends at and costs."""
    losses = ", ".join(f"{row.loss:.3f}" for row in one.rows)
    cost = f"{one.steps:,} steps, {in_flop(one.flop)}"
    return "\n".join([*wrap(one.reading, LETTERS), cost, losses])


@drawn
def law_figure(rows: Sequence[LossRow]) -> Picture:
    """How many models of each depth know how many hops in the end, and the most that depth allows.

    A circle's area goes with the number of models.
    """
    counts = Counter((row.layers, hops_of(row)) for row in rows)
    most = {row.layers: allowed(row) for row in sorted(rows, key=lambda row: row.layers)}
    figure = picture(
        "hops known, by depth",
        "How many models of each depth know how many hops in the end (a circle's area goes with "
        "their number, which stands in it), and the most that so many layers allow.",
        2.6,
    )
    axes = figure.subplots()
    axes.step([*most], [*most.values()], where="mid", color=COLOURS[1], label="exact law")
    for (layers, hops), count in counts.items():
        axes.scatter(layers, hops, s=CIRCLE * count, color=COLOURS[0], alpha=0.5, linewidth=0)
        axes.text(layers, hops, str(count), ha="center", va="center", fontsize=SMALL)
    axes.scatter([], [], s=CIRCLE, color=COLOURS[0], alpha=0.5, linewidth=0, label="models")
    asked = len(rows[0].final)
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
        axes.set_xticks(sorted({row.batch for row in rows}), minor=False)
        axes.get_xaxis().set_major_formatter("{x:.0f}")
        axes.minorticks_off()
    when.legend()
    return figure
