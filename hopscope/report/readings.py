"""Figures over readings and seeds: which claims hold under which reading, how many hops models of
each depth learn, and what the batch does to the plateau.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from hopscope.papers.cost import in_flop
from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
from hopscope.papers.musat.curriculum_claims import allowed, hops_of
from hopscope.papers.musat.reading_map import Tried
from hopscope.papers.musat.rows import LossRow
from hopscope.report.curves import COLOURS

DARK = 0.6
"""Share of the scale above which cells are so dark that white reads better."""


def map_figure(found: Sequence[Tried]) -> Figure:
    """A line for each reading, a column for each claim: for how many models it holds."""
    claims = [claim.id.removeprefix("musat/abc-") for claim in AS_WE_TAKE_IT]
    held = [[one.held(claim.judge) for claim in AS_WE_TAKE_IT] for one in found]
    shares = np.array(
        [[n / len(one.rows) for n in row] for one, row in zip(found, held, strict=True)]
    )
    figure = Figure(figsize=(7.6, 1.6 + 0.3 * len(found)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Greens", vmin=0, vmax=1, aspect="auto")
    for line, (one, row) in enumerate(zip(found, held, strict=True)):
        for column, count in enumerate(row):
            colour = "white" if shares[line, column] > DARK else "black"
            words = f"{count} of {len(one.rows)}"
            axes.text(column, line, words, ha="center", va="center", color=colour, fontsize=7)
    axes.set_xticks(range(len(claims)), claims, rotation=35, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(found)), list(map(told, found)), fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def told(one: Tried) -> str:
    """A reading, and what a model under it ends at and costs."""
    losses = ", ".join(f"{row.loss:.3f}" for row in one.rows)
    return f"{one.reading}\n{one.steps:,} steps, {in_flop(one.flop)} each: {losses}"


def law_figure(rows: Sequence[LossRow]) -> Figure:
    """How many models of each depth know how many hops in the end, and the most that depth allows.

    A circle's area goes with the number of models.
    """
    counts = Counter((row.layers, hops_of(row)) for row in rows)
    most = {row.layers: allowed(row) for row in sorted(rows, key=lambda row: row.layers)}
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.step([*most], [*most.values()], where="mid", color=COLOURS[1], label="exact law")
    for (layers, hops), count in counts.items():
        axes.scatter(layers, hops, s=110 * count, color=COLOURS[0], alpha=0.5, linewidth=0)
        axes.text(layers, hops, str(count), ha="center", va="center", fontsize=8)
    axes.scatter([], [], s=110, color=COLOURS[0], alpha=0.5, linewidth=0, label="models")
    asked = len(rows[0].final)
    axes.set(xlabel="layers", ylabel="hops known in the end", xticks=[*most])
    axes.set_ylim(-0.6, asked + 0.6)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def batch_figure(rows: Sequence[LossRow]) -> Figure:
    """When models learn each hop, and where they end, by the number of examples per step."""
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    when, end = figure.subplots(1, 2)
    for hop in range(len(rows[0].final)):
        name, colour = f"$x_{{{hop + 1}}}$", COLOURS[hop % len(COLOURS)]
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
        axes.spines[["top", "right"]].set_visible(False)
    when.legend(frameon=False, fontsize=8)
    return figure
