"""Accuracy of language models: figure 2 of the paper."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from matplotlib.axes import Axes

from hopscope.configs import LlmBench
from hopscope.llm.results import results
from hopscope.llm.run import BenchRun
from hopscope.report.look import COLOURS, DIM, LINES, Picture, drawn, picture, width
from hopscope.store import RunFolder

ROW = 0.17
"""Inches of a kind of question."""
ONE_COLUMN = 4.0
"""Inches up to which panels stand below each other."""
MARKS = "os^Dv<>P"
"""Marks of benchmarks, beside their colours."""


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


def bench_figure(run: BenchRun) -> Picture:
    """One benchmark."""
    return accuracy_figure([run.folder])


def accuracy_figure(folders: Sequence[RunFolder]) -> Picture:
    """The benchmarks in these runs, side by side."""
    asked = [folder.recipe_as(LlmBench) for folder in folders]
    models = [bench.model for bench in asked]
    # Where a model was asked twice, what differs is in its run's title, or in the end its seed.
    names = models if len(set(models)) == len(models) else [bench.title() for bench in asked]
    if len(set(names)) < len(names):
        names = [folder.name for folder in folders]
    return results_figure(
        {name: results(folder) for name, folder in zip(names, folders, strict=True)}
    )


@drawn
def results_figure(every: Mapping[str, Sequence[Scored]]) -> Picture:
    """Above or left, equations by hops; then every kind of question; a colour and a mark for each
    benchmark.
    """
    kinds = list(dict.fromkeys(each.kind for rows in every.values() for each in rows))
    wide = width(2) > ONE_COLUMN
    tall = ROW * len(kinds) * max(1.0, 0.5 * len(every))
    figure = picture(
        "accuracy of language models",
        "Accuracy by the number of hops of equations, and of every kind of question; bars: 95 % "
        "intervals; dotted: guessing.",
        (max(2.2, tall) if wide else 1.8 + tall) + 0.8 + 0.13 * len(every),
        columns=2,
    )
    ratios = (1, 1.3) if wide else (1.8, tall)
    first, second = (
        figure.subplots(1, 2, width_ratios=ratios)
        if wide
        else figure.subplots(2, 1, height_ratios=ratios)
    )
    for number, (label, rows) in enumerate(every.items()):
        drawn_as = COLOURS[number % LINES], MARKS[number % len(MARKS)]
        by_hops = [each for each in rows if _is_equations(each)]
        hops = [each.hops + 0.04 * (number - len(every) / 2) for each in by_hops]
        _points(first, hops, by_hops, (*drawn_as, "-"), label)
        places = [kinds.index(each.kind) + 0.7 * _beside(number, len(every)) for each in rows]
        _points(second, places, rows, (*drawn_as, ""), label, across=True)
    for place, kind in enumerate(kinds):
        level = next(each.guessing for rows in every.values() for each in rows if each.kind == kind)
        second.vlines(level, place - 0.4, place + 0.4, colors=DIM, linestyles=":")
    for level in {each.guessing for rows in every.values() for each in rows if _is_equations(each)}:
        first.axhline(level, color=DIM, linestyle=":")
    first.set(xlabel="hops", ylabel="accuracy", title="equations", ylim=(0, 1.02))
    first.xaxis.get_major_locator().set_params(integer=True)
    second.set_yticks(range(len(kinds)), kinds)
    second.set(title="every kind of question", xlabel="accuracy", xlim=(0, 1.02))
    second.invert_yaxis()
    handles, labels = second.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 if wide else 1)
    return figure


def _is_equations(each: Scored) -> bool:
    return each.kind.startswith("equations")


def _beside(number: int, count: int) -> float:
    """Where the marks of one benchmark of several stand, from -0.5 to 0.5."""
    return (number + 0.5) / count - 0.5


def _points(
    axes: Axes,
    places: Sequence[float],
    rows: Sequence[Scored],
    style: tuple[str, str, str],
    label: str,
    *,
    across: bool = False,
) -> None:
    """Draw accuracies with their intervals, upward or across."""
    if not rows:
        return
    colour, mark, line = style
    means = np.array([each.accuracy for each in rows])
    error = np.abs(np.array([each.interval for each in rows]).T - means)
    shown: dict[str, Any] = {"x": places, "y": means, "yerr": error}
    if across:
        shown = {"x": means, "y": places, "xerr": error}
    axes.errorbar(**shown, fmt=f"{mark}{line}", color=colour, capsize=1.5, label=label,
                  elinewidth=0.8)  # fmt: skip
