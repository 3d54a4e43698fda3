"""Figures of Chen et al. from tables of results: stages, other chains, other settings."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hopscope.papers.chen.claims import NEAR, RULES
from hopscope.papers.chen.rows import ChoiceRow, CourseRow, GrowthRow, SettingRow, TransferRow
from hopscope.papers.results import ResultsTable
from hopscope.plots.look import COLOURS, DIM, SMALL, Picture, drawn, picture
from hopscope.plots.ngram import PREDICTORS, Stages, Transfer, draw_stages, draw_transfer
from hopscope.plots.symbols import counted


def training_figures(table: ResultsTable) -> list[tuple[str, Picture]]:
    """Return the figures of the three stages, and of the trained models on other chains."""
    courses, others = table.of(CourseRow), table.of(TransferRow)
    columns = [_transfer(others, "length"), _transfer(others, "alpha")]
    return [
        ("stages", draw_stages(_stages(courses), "three stages")),
        ("transfer", draw_transfer(columns, "other chains than those trained on")),
    ]


def _stages(courses: Sequence[CourseRow]) -> Stages:
    return Stages(
        plan=courses[0].stages,
        epochs=np.array(courses[0].epochs),
        shares={
            name: np.array([row.shares[name] for row in courses]) for name in courses[0].shares
        },
        attention={
            name: np.array([row.attention[name] for row in courses if name in row.attention])
            for name in dict.fromkeys(name for row in courses for name in row.attention)
        },
        a=np.array([row.a for row in courses]),
        losses={
            "train": np.array([row.train for row in courses]),
            "validation": np.array([row.validation for row in courses]),
        },
    )


def _transfer(rows: Sequence[TransferRow], varied: Literal["length", "alpha"]) -> Transfer:
    own = sorted(
        (row for row in rows if row.varied == varied), key=lambda row: (row.seed, row.value)
    )
    values = sorted({row.value for row in own})
    other = next(row for row in rows if row.varied != varied)
    losses = [(row.loss.model, row.loss.gih, row.loss.bayes, row.loss.truth) for row in own]
    return Transfer(
        varied=varied,
        values=np.array(values),
        trained=other.length if varied == "length" else other.alpha,
        losses=np.reshape(losses, (-1, len(values), len(PREDICTORS))),
        distance=np.reshape([row.distance for row in own], (-1, len(values))),
    )


GROWTH = {
    "trained": "trained",
    "counts": "by every chain's counts",
    "found": "only chains with a right match",
    "even": "as many matches in every chain",
    "found and even": "both: log(t)/gap",
}
"""The label of each curve of a."""


@drawn
def growth_figure(rows: Sequence[GrowthRow]) -> Picture:
    """Draw the growth of a in the last stage, trained and predicted with fewer differences."""
    figure = picture(
        f"how a grows, {counted(len(rows), 'seed')}",
        "The scale a by the epoch of the last stage: trained, and as it would grow by the counts "
        "of every chain, with what differs from chain to chain taken away. In the legend: the "
        "slope by the logarithm of the epoch.",
        3.2,
    )
    axes = figure.subplots()
    for number, (name, said) in enumerate(GROWTH.items()):
        mean = np.mean([row.courses[name] for row in rows], axis=0)
        slope = float(np.mean([row.slopes[name] for row in rows]))
        axes.plot(
            rows[0].epochs, mean, color=COLOURS[number], label=f"{said}: {slope:.2f}",
            linestyle="-" if name != "counts" else "--", zorder=3 if name == "counts" else 2,
        )  # fmt: skip
    axes.set(xscale="log", xlim=(1, None), xlabel="epoch of the last stage", ylabel="scale a")
    figure.legend(loc="outside lower center", title="slope by log(epoch)")
    return figure


@drawn
def choices_figure(rows: Sequence[ChoiceRow]) -> Picture:
    """Draw, for each setting, in what share of the seeds each rule predicts the winning set."""
    names = list(dict.fromkeys(row.setting for row in rows))[::-1]
    figure = picture(
        "which set of heads wins",
        f"In what share of the seeds each rule names the set that wins, in {len(names)} settings.",
        0.32 * len(names) + 0.9,
        columns=2,
    )
    axes = figure.subplots()
    for number, (rule, said) in enumerate(RULES.items()):
        right = [
            float(np.mean([row.predicted.get(rule) == row.chosen_lags for row in rows
                           if row.setting == name]))
            for name in names
        ]  # fmt: skip
        places = np.arange(len(names)) + 0.19 - 0.38 * number
        bars = axes.barh(places, right, height=0.36, color=COLOURS[number], label=said)
        axes.bar_label(bars, [f"{share:.0%}" for share in right], padding=3, fontsize=SMALL)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 1.1), xlabel="share of the seeds", ylim=(-0.6, len(names) - 0.4))
    figure.legend(loc="outside lower center", ncols=2)
    return figure


@drawn
def settings_figure(rows: Sequence[SettingRow]) -> Picture:
    """Draw the final distance to the induction head of the models of each setting."""
    names = list(dict.fromkeys(row.setting for row in rows))[::-1]
    seeds = counted(len({row.seed for row in rows}), "seed")
    figure = picture(
        f"how near to the induction head each setting ends, {seeds}",
        "Distance to the induction head over the parents after training, for each of "
        f"{len(names)} settings; left of the dotted line a model counts as that head.",
        0.155 * len(names) + 0.9,
        columns=2,
    )
    axes = figure.subplots()
    for right, said in ((True, "chose the parents' lags"), (False, "chose other lags")):
        chosen = [row for row in rows if (row.chosen_lags == row.parents) is right]
        axes.plot(
            [row.distance for row in chosen],
            [names.index(row.setting) for row in chosen],
            "o" if right else "D", color=COLOURS[0 if right else 1], label=said,
            markersize=3.5, alpha=0.7,
        )  # fmt: skip
    axes.axvline(NEAR, color=DIM, linestyle=":", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="distance", xscale="log", ylim=(-0.6, len(names) - 0.4))
    figure.legend(loc="outside lower center", ncols=2)
    return figure
