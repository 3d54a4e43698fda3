"""Accuracy of language models: figure 2 of the paper."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopscope.llm.results import results
from hopscope.report.curves import COLOURS
from hopscope.store import RunFolder


@runtime_checkable
class Scored(Protocol):
    """One kind of question with its accuracy; a benchmark's Result is, and a paper's AnswerRow."""

    @property
    def kind(self) -> str:
        """The formulation, with the number of hops where it can be chosen."""

    @property
    def hops(self) -> int:
        """The number of look-ups that an answer takes."""

    @property
    def accuracy(self) -> float:
        """The probability of the right answer, averaged over questions."""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""

    @property
    def guessing(self) -> float:
        """The accuracy of a guess among the acceptable answers."""


def accuracy_figure(folders: Sequence[RunFolder]) -> Figure:
    """The benchmarks in these runs, side by side."""
    return results_figure({folder.name: results(folder) for folder in folders})


def results_figure(every: Mapping[str, Sequence[Scored]]) -> Figure:
    """Left, equations by hops; right, every kind of question; a colour for each benchmark."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    kinds = list(dict.fromkeys(each.kind for rows in every.values() for each in rows))
    for number, (label, rows) in enumerate(every.items()):
        colour = COLOURS[number % len(COLOURS)]
        by_hops = [each for each in rows if each.kind.startswith("equations")]
        _points(left, [float(each.hops) for each in by_hops], by_hops, colour, "o-")
        places = [kinds.index(each.kind) + 0.12 * (number - len(every) / 2) for each in rows]
        _points(right, places, rows, colour, "o", label)
    for kind_place, kind in enumerate(kinds):
        level = next(each.guessing for rows in every.values() for each in rows if each.kind == kind)
        right.hlines(level, kind_place - 0.35, kind_place + 0.35, colors="#999999", linestyles=":")
    levels = {each.guessing for rows in every.values() for each in rows if "equations" in each.kind}
    for level in levels:
        left.axhline(level, color="#999999", linestyle=":")
    left.set(xlabel="hops D", ylabel="accuracy", title="equations")
    left.xaxis.get_major_locator().set_params(integer=True)
    right.set_xticks(range(len(kinds)), kinds, rotation=30, ha="right")
    right.set_title("every kind of question (dotted: guessing)")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set_ylim(0, 1.02)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _points(
    axes: Axes, x: Sequence[float], rows: Sequence[Scored], colour: str, style: str, label: str = ""
) -> None:
    """Draw accuracies with their intervals."""
    if not rows:
        return
    means = np.array([each.accuracy for each in rows])
    ends = np.array([each.interval for each in rows]).T
    error = np.abs(ends - means)
    axes.errorbar(x, means, yerr=error, fmt=style, color=colour, capsize=2, label=label or None)
