"""Language models: the accuracy of their answers (figure 2 of the paper), and what heads read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from hopscope.configs import LmBench
from hopscope.lm.heads import HeadScores
from hopscope.lm.results import BenchRun, Result, results
from hopscope.papers.musat.rows import AnswerRow
from hopscope.plots.look import COLOURS, DIM, LINES, Picture, drawn, legend_columns, picture, shade
from hopscope.store import RunFolder

ROW = 0.17
"""Height of a kind of question, in inches."""
MARKS = "os^Dv<>P"
"""Markers of benchmarks, in addition to their colours."""


Scored = Result | AnswerRow
"""One kind of question with its accuracy."""


def bench_figure(run: BenchRun) -> Picture:
    """Draw the accuracies of one benchmark."""
    return accuracy_figure([run.folder])


def accuracy_figure(folders: Sequence[RunFolder]) -> Picture:
    """Draw the accuracies of the benchmarks in these runs, side by side."""
    asked = [folder.recipe_as(LmBench) for folder in folders]
    models = [bench.model for bench in asked]
    # Runs of one model are named by their titles, or by run names if they differ only in the seed.
    names = models if len(set(models)) == len(models) else [bench.title() for bench in asked]
    if len(set(names)) < len(names):
        names = [folder.name for folder in folders]
    return results_figure(
        {name: results(folder) for name, folder in zip(names, folders, strict=True)}
    )


@drawn
def results_figure(every: Mapping[str, Sequence[Scored]]) -> Picture:
    """Draw accuracies: left, equations by hops; right, all kinds of questions; a mark per model."""
    every = {
        name: [each for each in rows if each.accuracy is not None] for name, rows in every.items()
    }
    kinds = list(dict.fromkeys(each.kind for rows in every.values() for each in rows))
    tall = ROW * len(kinds) * max(1.0, 0.5 * len(every))
    figure = picture(
        "accuracy of language models",
        "Accuracy by the number of hops of equations, and of every kind of question; bars: 95 % "
        "intervals; dotted: chance.",
        max(2.2, tall) + 0.7 + 0.13 * len(every),
        columns=2,
    )
    first, second = figure.subplots(1, 2, width_ratios=(1, 1.3))
    apart = min(0.04, 0.5 / max(1, len(every)))
    for number, (label, rows) in enumerate(every.items()):
        drawn_as = COLOURS[number % LINES], MARKS[number % len(MARKS)]
        lines: dict[str, list[Scored]] = {}
        for each in sorted(filter(_is_equations, rows), key=lambda each: each.hops):
            lines.setdefault(each.kind.replace(f"-d{each.hops}", ""), []).append(each)
        for by_hops in lines.values():
            hops = [each.hops + apart * (number - (len(every) - 1) / 2) for each in by_hops]
            _points(first, hops, by_hops, (*drawn_as, "-"), label)
        beside = 0.7 * ((number + 0.5) / len(every) - 0.5)
        places = [kinds.index(each.kind) + beside for each in rows]
        _points(second, places, rows, (*drawn_as, ""), label, across=True)
    for place, kind in enumerate(kinds):
        level = next(each.chance for rows in every.values() for each in rows if each.kind == kind)
        second.vlines(level, place - 0.4, place + 0.4, colors=DIM, linestyles=":")
    for level in {each.chance for rows in every.values() for each in rows if _is_equations(each)}:
        first.axhline(level, color=DIM, linestyle=":")
    first.set(xlabel="hops", ylabel="accuracy", title="equations", ylim=(0, 1.02))
    first.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    second.set_yticks(range(len(kinds)), kinds)
    second.set(title="every kind of question", xlabel="accuracy", xlim=(0, 1.02))
    second.invert_yaxis()
    handles, labels = second.get_legend_handles_labels()
    labels = [label.replace("$", r"\$") for label in labels]  # no formulas of matplotlib
    figure.legend(
        handles, labels, loc="outside lower center", ncols=legend_columns(figure, every, 2)
    )
    return figure


def _is_equations(each: Scored) -> bool:
    return each.kind.startswith("equations")


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


@drawn
def heads_figure(scores: HeadScores) -> Picture:
    """Draw every head's largest score over the routes of each purpose; rings: beyond chance."""
    purposes = list(dict.fromkeys(route.purpose for route in scores.routes))
    layers = scores.score.shape[1]
    figure = picture(
        f"heads of {scores.model} on {scores.kind}",
        "Of each head the most that it attends to the own chain beyond what it gives to each other "
        "chain, over all routes of a kind (below 0 drawn as 0); rings: more than chance. "
        f"{scores.questions} questions, {scores.correct} answered correctly.",
        min(4.0, max(1.6, 0.09 * layers + 1.1)),
        columns=2,
    )
    panels = figure.subplots(1, len(purposes), sharey=True, squeeze=False)[0]
    for axes, purpose in zip(panels, purposes, strict=True):
        chosen = [n for n, route in enumerate(scores.routes) if route.purpose == purpose]
        peak = scores.score[chosen].max(axis=0)
        shown = shade(axes, peak, origin="lower")
        layer, head = np.nonzero(scores.significant[chosen].any(axis=0))
        axes.plot(head, layer, "o", markersize=4, markerfacecolor="none", color=COLOURS[1])
        axes.set(title=purpose, xlabel="head")
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    panels[0].set_ylabel("layer")
    panels[0].yaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    figure.colorbar(shown, ax=list(panels), label="own chain − others", aspect=18)
    return figure
