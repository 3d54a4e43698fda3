"""Figures of the n-gram experiment: its stages, its heads, its way to the induction head."""

import itertools
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopscope.configs import MarkovProcess
from hopscope.markov.evaluation import Comparison, Moment
from hopscope.markov.parameters import set_name, sets, softmax
from hopscope.markov.run import MarkovRun
from hopscope.report.curves import COLOURS

BAND = 0.2
NEAR = 0.01
"""Points nearer to each other than this part of a stage are drawn as one."""
LINES = {"model": COLOURS[0], "GIH": COLOURS[1], "Bayes": COLOURS[2], "truth": COLOURS[7]}


def stages_figure(run: MarkovRun) -> Figure:
    """The selector's sets, the heads' attention, the scale a, and the losses, by epoch."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2)
    courses = [run.course(seed) for seed in run.experiment.seeds]
    scale, model = _Scale(run), run.experiment.model
    shown = scale.shown(courses[0].epochs)
    epochs = courses[0].epochs[shown]
    for number, heads in enumerate(sets(model)):
        shares = np.stack([course.shares[shown, number] for course in courses])
        _band(axes[0, 0], epochs, shares, COLOURS[number % len(COLOURS)], set_name(heads))
    for head in range(model.heads):
        lag = min(head, model.window - 1)
        attention = np.stack([softmax(course.w[shown])[:, head, lag] for course in courses])
        label = f"head {head + 1} to lag {lag + 1}"
        _band(axes[0, 1], epochs, attention, COLOURS[head % len(COLOURS)], label)
    _band(axes[1, 0], epochs, np.stack([course.a[shown] for course in courses]), COLOURS[0], "a")
    for split, colour in (("train", COLOURS[0]), ("validation", COLOURS[1])):
        losses = run.losses(split)[1][shown, :, 0].T
        _band(axes[1, 1], epochs, losses, colour, split)
    titles = ("share of c² of each set of heads", "attention of each head to its own lag",
              "scale of the second layer", "loss")  # fmt: skip
    for one, title in zip(axes.flat, titles, strict=True):
        scale.draw(one)
        one.set_title(title, fontsize=10, pad=18)
        one.legend(frameon=False, fontsize=8)
    figure.suptitle(_title(run), fontsize=11)
    return figure


def heads_figure(run: MarkovRun) -> Figure:
    """Every head's attention to every lag, before and after training (the mean over seeds)."""
    courses = [run.course(seed) for seed in run.experiment.seeds]
    sides = {
        "before": np.mean([softmax(course.w[0]) for course in courses], axis=0),
        "after": np.mean([softmax(course.w[-1]) for course in courses], axis=0),
    }
    model = run.experiment.model
    figure = Figure(
        figsize=(2.2 + 1.3 * model.window, 1.6 + 0.5 * model.heads), layout="constrained"
    )
    for axes, (name, attention) in zip(figure.subplots(1, 2), sides.items(), strict=True):
        axes.imshow(attention, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (head, lag), weight in np.ndenumerate(attention):
            colour = "white" if weight > 0.5 else "black"
            axes.text(
                lag, head, f"{weight:.3f}", ha="center", va="center", color=colour, fontsize=8
            )
        axes.set_xticks(range(model.window), range(1, model.window + 1))
        axes.set_yticks(range(model.heads), range(1, model.heads + 1))
        axes.set(title=f"attention {name}", xlabel="lag", ylabel="head")
    return figure


def approach_figure(run: MarkovRun, moments: Sequence[Sequence[Moment]], gap: float) -> Figure:
    """The last stage: how far the model is from GIH by epoch and by a, and how a grows."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for number, seed in enumerate(moments):
        epochs = np.array([each.epoch for each in seed]) + 1
        scale = np.array([each.a for each in seed])
        distance = [each.distance for each in seed]
        label = "each seed" if number == 0 else None
        style = {"color": COLOURS[0], "linewidth": 1, "alpha": 0.6, "label": label}
        axes[0].plot(epochs, distance, **style)
        axes[1].plot(scale, distance, **style)
        axes[2].plot(epochs, scale, **style)
    if gap > 0:
        _predicted(axes[2], moments, gap)
    labels = (("epoch of the stage", "distance to GIH"), ("a", "distance to GIH"),
              ("epoch of the stage", "a"))  # fmt: skip
    for one, (x, y) in zip(axes, labels, strict=True):
        one.set(xlabel=x, ylabel=y)
        one.spines[["top", "right"]].set_visible(False)
        one.legend(frameon=False, fontsize=8)
    if any(each.distance > 0 for seed in moments for each in seed):
        axes[0].set_yscale("log")
        axes[1].set_yscale("log")
    for one in (axes[0], axes[2]):
        one.set_xscale("log")
    figure.suptitle(f"{_title(run)}: towards the induction head", fontsize=11)
    return figure


def transfer_figure(
    run: MarkovRun, found: Sequence[Sequence[tuple[MarkovProcess, Comparison]]]
) -> Figure:
    """Losses and distance to GIH on chains of other lengths (left) and priors (right)."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 2, sharex="col")
    trained = run.experiment.process
    for column, (name, kept) in enumerate((("length", "alpha"), ("alpha", "length"))):
        chosen = [
            number
            for number, (process, _) in enumerate(found[0])
            if getattr(process, kept) == getattr(trained, kept)
        ]
        chosen.sort(key=lambda number: getattr(found[0][number][0], name))
        x = [getattr(found[0][number][0], name) for number in chosen]
        for place, (label, colour) in enumerate(LINES.items()):
            values = [
                [astuple(seed[number][1].expected)[place] for number in chosen] for seed in found
            ]
            _band(axes[0, column], np.array(x), np.array(values), colour, label)
        apart = [[seed[number][1].distance for number in chosen] for seed in found]
        _band(axes[1, column], np.array(x), np.array(apart), COLOURS[0], "model to GIH")
        axes[0, column].set(ylabel="expected loss")
        axes[1, column].set(ylabel="distance", xlabel=name, ylim=(0, None))
        for row in range(2):
            axes[row, column].set_xscale("log")
            axes[row, column].axvline(getattr(trained, name), color="#999999", linestyle=":")
            axes[row, column].spines[["top", "right"]].set_visible(False)
            axes[row, column].legend(frameon=False, fontsize=8)
    figure.suptitle(f"{_title(run)}: other chains (dotted: trained on)", fontsize=11)
    return figure


def _predicted(axes: Axes, moments: Sequence[Sequence[Moment]], gap: float) -> None:
    """A line with the slope that a large a grows by: da/dt ~ e^(−a·gap) gives log(t)/gap."""
    ends = np.array([each.epoch for each in moments[0]]) + 1
    scale = np.mean([[each.a for each in seed] for seed in moments], axis=0)
    half = int(np.searchsorted(scale, 0.8 * scale[-1]))
    reach = ends[max(0, half - 20) : half + 20]
    line = scale[half] + np.log(reach / ends[half]) / gap
    axes.plot(reach, line, "--", color=COLOURS[1], label=f"slope 1/gap = {1 / gap:.2f}")


class _Scale:
    """Epochs, each stage as wide as the others and logarithmic: most happens at its beginning."""

    def __init__(self, run: MarkovRun) -> None:
        self.letters = [letters for letters, _ in run.experiment.descent.plan()]
        self.ends = np.cumsum([0, *(epochs for _, epochs in run.experiment.descent.plan())])
        self.spans = np.log1p(np.diff(self.ends))

    def place(self, epoch: Any) -> Any:
        last = len(self.spans) - 1
        stage = np.clip(np.searchsorted(self.ends, epoch, side="right") - 1, 0, last)
        since = np.clip(epoch - self.ends[stage], 0, None)
        return stage + np.log1p(since) / self.spans[stage]

    def epoch(self, place: Any) -> Any:
        stage = np.clip(np.floor(place), 0, len(self.spans) - 1).astype(int)
        return self.ends[stage] + np.expm1((place - stage) * self.spans[stage])

    def shown(self, epochs: np.ndarray) -> list[int]:
        """Which of these epochs to draw."""
        places, chosen = self.place(epochs), [0]
        for number in range(1, len(epochs)):
            if places[number] - places[chosen[-1]] >= NEAR or epochs[number] in self.ends:
                chosen.append(number)
        return chosen

    def draw(self, axes: Axes) -> None:
        """Put the scale on an axis, with the letters of the stages above."""
        axes.set_xscale("function", functions=(self.place, self.epoch))
        axes.set_xlim(0, self.ends[-1])
        ticks = _ticks(self.ends)
        axes.set_xticks(ticks, [_tick(tick, self.ends) for tick in ticks], fontsize=8)
        axes.minorticks_off()
        for number, letters in enumerate(self.letters):
            if number:
                axes.axvline(self.ends[number], color="#bbbbbb", linewidth=0.8)
            where: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "bottom"}
            axes.text((number + 0.5) / len(self.letters), 1.01, letters, color="#888888", **where)
        axes.set_xlabel("epoch (counted anew in each stage)")
        axes.spines[["top", "right"]].set_visible(False)


def _ticks(ends: np.ndarray) -> list[int]:
    """The ends of stages, and within them powers of ten that are not too near an end."""
    ticks = {0}
    for begin, end in itertools.pairwise(ends.tolist()):
        powers = (10**power for power in range(1, 7))
        ticks |= {end, *(begin + power for power in powers if 5 * power < end - begin)}
    return sorted(ticks)


def _tick(epoch: int, ends: np.ndarray) -> str:
    """Epochs since the stage began."""
    stage = max(0, int(np.searchsorted(ends, epoch, side="left")) - 1)
    since = epoch - int(ends[stage])
    return f"{since // 1000}k" if since >= 1_000 else str(since)


def _band(axes: Axes, x: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    """The mean over seeds, and a band from the least to the largest."""
    if len(values) > 1:
        axes.fill_between(x, values.min(0), values.max(0), color=colour, alpha=BAND, linewidth=0)
    axes.plot(x, values.mean(0), color=colour, label=label, linewidth=1.4)


def _title(run: MarkovRun) -> str:
    process, seeds = run.experiment.process, len(run.experiment.seeds)
    parents = ", ".join(map(str, process.parents))
    several = f", {seeds} seeds" if seeds > 1 else ""
    return (
        f"{run.name}\n{process.alphabet} symbols, parents {parents}, α = {process.alpha:g}{several}"
    )
