"""A circuit compared with other methods: the rows that they find, and their faithfulness."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from hopscope.circuits.ranking import Arrow, Baselines, Ranking
from hopscope.plots.look import COLOURS, DIM, INK, Picture, drawn, picture

ACROSS = 3
"""Number of panels in a row."""
LOWEST, HIGHEST = -0.5, 1.5
"""Ends of the axis of faithfulness; values beyond an end are drawn there."""
LEAST = 1e-3
"""Scores below this are not drawn."""


@drawn
def baselines_figure(found: Baselines) -> Picture:
    """Draw a panel for each method (precision and recall of the circuit's rows by threshold), and
    one with the faithfulness of all methods by the number of arrows kept.
    """
    count = len(found.rankings)
    down = -(-(count + 1) // ACROSS)
    figure = picture(
        "what other methods find of the circuit",
        "Of each method, precision (solid) and recall (dotted) of the circuit's rows, by the least "
        "score that counts; and the faithfulness of its best arrows (0: none is kept, 1: all are). "
        f"Star: the circuit. Faithfulness beyond {LOWEST:g} or {HIGHEST:g} is drawn there; scores "
        f"below {LEAST:g} are left out.",
        1.8 * down + 0.3,
        columns=2,
    )
    panels = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for axes in panels[count + 1 :]:
        axes.set_axis_off()
    for number, (axes, ranking) in enumerate(zip(panels, found.rankings, strict=False)):
        _grades(axes, ranking, found.circuit, COLOURS[number])
    panels[0].set_ylabel("of the circuit's rows")
    _worth(panels[count], found)
    named = panels[count].get_legend_handles_labels()
    if count + 1 < len(panels):  # there is an empty place
        panels[count + 1].legend(*named, loc="upper left")
    else:
        panels[count].legend(*named, loc="best")
    return figure


def _grades(axes: Axes, ranking: Ranking, circuit: Sequence[Arrow], colour: str) -> None:
    grades = ranking.grades(circuit, "row")
    thresholds = [grade.threshold for grade in grades]
    precision, recall = ([grade[n] for grade in grades] for n in (1, 2))
    axes.step(thresholds, precision, where="post", color=colour, marker=".", label="precision")
    axes.step(
        thresholds, recall, where="post", color=colour, marker=".", linestyle=":", label="recall"
    )
    axes.set(
        xscale="log",
        xlim=(LEAST, 1.3 * max([1.0, *thresholds])),
        ylim=(-0.03, 1.05),
        title=ranking.method,
    )
    axes.set_xlabel("least score")
    axes.legend(loc="best")


def _worth(axes: Axes, found: Baselines) -> None:
    for number, ranking in enumerate(found.rankings):
        sizes = [kept.arrows for kept in ranking.kept]
        shares = np.clip([kept.faithfulness for kept in ranking.kept], LOWEST, HIGHEST)
        axes.plot(sizes, shares, marker=".", color=COLOURS[number], label=ranking.method)
    mine = found.circuit_kept
    share = np.clip(mine.faithfulness, LOWEST, HIGHEST)
    axes.plot(mine.arrows, share, "*", color=INK, markersize=8, label="circuit")
    axes.axhline(0, color=DIM, linestyle=":", linewidth=1)
    axes.axhline(1, color=DIM, linestyle=":", linewidth=1)
    axes.set(xscale="log", ylim=(LOWEST - 0.05, HIGHEST + 0.05), xlim=(0.8, 1.2 * found.possible))
    axes.xaxis.set_minor_formatter(NullFormatter())  # labels of a few arrows would overlap
    axes.set(xlabel=f"arrows kept, of {found.possible}", title="what arrows are worth")
    axes.set_ylabel("faithfulness")
