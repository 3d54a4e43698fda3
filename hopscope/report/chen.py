"""The n-gram experiment drawn from tables of results: stages, other chains, other settings."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopscope.papers.chen.rows import CourseRow, SettingRow, TransferRow
from hopscope.papers.table import Table
from hopscope.report.curves import COLOURS

KINDS = {"model": "model", "gih": "induction head", "bayes": "Bayes", "truth": "truth"}


def training_figures(table: Table) -> list[tuple[str, str, Figure]]:
    """What happens in the three stages, and what the trained models do with other chains."""
    courses = table.of(CourseRow)
    others = table.of(TransferRow)
    return [
        (
            "stages",
            f"sets, heads, a, and losses over three stages, {len(courses)} seeds",
            _stages(courses),
        ),
        ("transfer", "losses on chains of other lengths and priors", _transfer(others)),
    ]


def _stages(courses: Sequence[CourseRow]) -> Figure:
    figure = Figure(figsize=(7.2, 7.2), layout="constrained")
    shares, heads, scale, losses = figure.subplots(4, 1, sharex=True)
    for row in courses:
        epochs = _stretched(row)
        for number, (name, values) in enumerate(row.shares.items()):
            _line(shares, epochs, values, number, name)
        for number, (name, values) in enumerate(row.attention.items()):
            _line(heads, epochs, values, number, name)
        _line(scale, epochs, row.a, 0, "a")
        _line(losses, epochs, row.train, 0, "training")
        _line(losses, epochs, row.validation, 1, "validation")
    named = {shares: "share of Σ c²", heads: "attention", scale: "a", losses: "loss"}
    for axes, name in named.items():
        axes.set_ylabel(name)
        axes.spines[["top", "right"]].set_visible(False)
        handles = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
        axes.legend(handles.values(), handles, frameon=False, fontsize=7, loc="center right")
        for end in range(1, len(courses[0].stages)):
            axes.axvline(end, color="#999999", linestyle=":", linewidth=0.8)
    stages = courses[0].stages
    losses.set_xticks(
        [number + 0.5 for number in range(len(stages))],
        [f"stage {letters}: {epochs:,} epochs" for letters, epochs in stages],
    )
    losses.tick_params(axis="x", length=0)
    return figure


def _stretched(row: CourseRow) -> list[float]:
    """Epochs with each stage as wide as the others, and its beginning stretched."""
    ends = np.cumsum([0, *(epochs for _, epochs in row.stages)])
    places = []
    for epoch in row.epochs:
        stage = min(int(np.searchsorted(ends, epoch, side="left")), len(ends) - 1)
        begin, end = ends[max(0, stage - 1)], ends[max(1, stage)]
        inside = np.log1p(epoch - begin) / np.log1p(end - begin)
        places.append(max(0, stage - 1) + float(inside))
    return places


def _line(axes: Axes, x: Sequence[float], y: Sequence[float], number: int, label: str) -> None:
    axes.plot(x, y, color=COLOURS[number % len(COLOURS)], linewidth=0.8, alpha=0.6, label=label)


def _transfer(rows: Sequence[TransferRow]) -> Figure:
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    for axes, varied in zip(figure.subplots(1, 2, sharey=True), ("length", "alpha"), strict=True):
        own = [row for row in rows if row.varied == varied]
        values = sorted({row.value for row in own})
        for number, (kind, label) in enumerate(KINDS.items()):
            spread = np.array(
                [[getattr(r.loss, kind) for r in own if r.value == v] for v in values]
            )
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(values, spread.mean(1), "o-", color=colour, markersize=3, label=label)
            axes.fill_between(values, spread.min(1), spread.max(1), color=colour, alpha=0.15)
        axes.set(xscale="log", xlabel={"length": "length L", "alpha": "prior α"}[varied])
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set(ylabel="expected loss", ylim=(0, None))
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


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
