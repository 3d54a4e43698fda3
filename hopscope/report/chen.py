"""Figures of Chen et al. from tables of results: stages, other chains, other settings."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from hopscope.papers.chen.judges import RULES
from hopscope.papers.chen.rows import ChoiceRow, CourseRow, GrowthRow, SettingRow, TransferRow
from hopscope.papers.table import Table
from hopscope.report.curves import COLOURS
from hopscope.report.stages import Stages, draw_stages
from hopscope.report.transfer import Transfer, draw_transfer


def training_figures(table: Table) -> list[tuple[str, str, Figure]]:
    """What happens in the three stages, and what the trained models do with other chains."""
    courses, others = table.of(CourseRow), table.of(TransferRow)
    seeds = f"{len(courses)} seed{'s' * (len(courses) > 1)}"
    stages = draw_stages(_stages(courses), seeds)
    columns = [_transfer(others, "length"), _transfer(others, "alpha")]
    transfer = draw_transfer(columns, f"{seeds}: other chains (dotted: trained on)")
    return [
        ("stages", f"sets, heads, a, and losses over three stages, {seeds}", stages),
        ("transfer", "losses and distances on chains of other lengths and priors", transfer),
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
    own = sorted((row for row in rows if row.varied == varied), key=lambda row: row.value)
    values = sorted({row.value for row in own})
    other = next(row for row in rows if row.varied != varied)
    return Transfer(
        varied=varied,
        values=np.array(values),
        trained=other.length if varied == "length" else other.alpha,
        losses=_by_seed(own, [_losses(row) for row in own]),
        distance=_by_seed(own, [row.distance for row in own]),
    )


def _losses(row: TransferRow) -> tuple[float, ...]:
    """In the order of the figure's lines."""
    return row.loss.model, row.loss.gih, row.loss.bayes, row.loss.truth


def _by_seed(
    rows: Sequence[TransferRow], numbers: Sequence[float] | Sequence[Sequence[float]]
) -> Float[np.ndarray, "seed value *line"]:
    """Numbers of rows, which are sorted by value, as one line of values for each seed."""
    seeds = sorted({row.seed for row in rows})
    return np.stack(
        [
            np.array([each for row, each in zip(rows, numbers, strict=True) if row.seed == seed])
            for seed in seeds
        ]
    )


GROWTH = {
    "trained": "trained",
    "counts": "by every chain's counts",
    "found": "only chains with a right match",
    "even": "as many matches in every chain",
    "found and even": "both: log(t)/gap",
}
"""What each course of a is called."""


def growth_figures(table: Table) -> list[tuple[str, str, Figure]]:
    """How a grows in the last stage, and how it would under fewer differences between chains."""
    rows = table.of(GrowthRow)
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for number, (name, said) in enumerate(GROWTH.items()):
        mean = np.mean([row.courses[name] for row in rows], axis=0)
        slope = float(np.mean([row.slopes[name] for row in rows]))
        axes.plot(
            rows[0].epochs, mean, color=COLOURS[number], label=f"{said}: {slope:.2f}",
            linestyle="-" if name != "counts" else "--", zorder=3 if name == "counts" else 2,
        )  # fmt: skip
    axes.set(xscale="log", xlim=(1, None), xlabel="epoch of the last stage", ylabel="scale a")
    axes.legend(frameon=False, fontsize=8, title="slope by the logarithm of the epoch")
    axes.spines[["top", "right"]].set_visible(False)
    seeds = f"{len(rows)} seed{'s' * (len(rows) > 1)}"
    return [
        ("courses", f"a by the epoch of the last stage, trained and by counts, {seeds}", figure)
    ]


def choices_figures(table: Table) -> list[tuple[str, str, Figure]]:
    """In what share of the seeds each rule names the set that wins, setting by setting."""
    rows = table.of(ChoiceRow)
    names = list(dict.fromkeys(row.setting for row in rows))[::-1]
    figure = Figure(figsize=(7.2, 0.5 * len(names) + 0.9), layout="constrained")
    axes = figure.subplots()
    for number, (rule, said) in enumerate(RULES.items()):
        right = [
            float(np.mean([row.predicted.get(rule) == row.chosen_lags for row in rows
                           if row.setting == name]))
            for name in names
        ]  # fmt: skip
        places = np.arange(len(names)) + 0.19 - 0.38 * number
        bars = axes.barh(places, right, height=0.36, color=COLOURS[number], label=said)
        axes.bar_label(bars, [f"{share:.0%}" for share in right], padding=3, fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set(xlim=(0, 1.1), xlabel="share of the seeds in which the rule names the set that wins")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    said = f"how often each rule is right, in {len(names)} settings"
    return [("rules", said, figure)]


def settings_figures(table: Table) -> list[tuple[str, str, Figure]]:
    """How near to the induction head each setting ends."""
    rows = table.of(SettingRow)
    figure = Figure(figsize=(7.2, 0.22 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots()
    for number, row in enumerate(rows[::-1]):
        right = row.chosen_lags == row.parents
        axes.barh(number, row.distance, color=COLOURS[0] if right else COLOURS[1], height=0.7)
    axes.set_yticks(range(len(rows)), [row.setting for row in rows[::-1]], fontsize=7)
    axes.set_xlabel("distance to the induction head over the parents (orange: other lags chosen)")
    axes.spines[["top", "right"]].set_visible(False)
    said = f"distance to the induction head after training, for each of {len(rows)} settings"
    return [("distances", said, figure)]
