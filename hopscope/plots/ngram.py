"""Figures of the n-gram experiment: stages, heads, approach to the induction head, other chains.

`Stages` and `Transfer` are the data of two figures, from a run or from rows of results (`chen`).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Num
from matplotlib.axes import Axes

from hopscope.configs import NgramProcess
from hopscope.configs.recipe import SPLITS
from hopscope.ngram.evaluation import Evaluation, Moment
from hopscope.ngram.parameters import set_name, sets
from hopscope.ngram.run import NgramRun
from hopscope.plots.look import (
    COLOURS,
    DIM,
    FAINT,
    INK,
    LETTER,
    PAPER,
    SMALL,
    Picture,
    band,
    drawn,
    picture,
    shade,
)
from hopscope.plots.names import run_title
from hopscope.plots.symbols import counted, seed_text

LAGS, MARKS = 4, 12
"""Largest number of lags in a narrow figure, and of marked lags."""
AROUND = 1.4
"""Inches of the figure of lags besides its cells."""
NUMBER = 3.5 * LETTER
"""Width of a share of attention, in inches; in narrower cells it is not written."""
NAMED = 6
"""Most lines with names in a panel of stages; its legend has no room for more."""
MARKED, ENDS = 4, 8
"""The most stages with marks within, and the most ends of stages that are marked."""
NEAR = 0.01
"""Points closer than this share of a stage's width are drawn as one."""


def stages_figure(run: NgramRun) -> Picture:
    """Draw the selector's sets, the heads' attention, the scale a, and the losses, by epoch."""
    model, courses = run.recipe.model, [run.course(seed) for seed in run.recipe.seeds]
    attention = np.stack([course.attention for course in courses])
    found = Stages(
        plan=run.recipe.descent.plan(),
        epochs=courses[0].epochs,
        shares={
            set_name(heads): np.stack([course.shares[:, number] for course in courses])
            for number, heads in enumerate(sets(model))
        },
        attention={
            f"head {number} to lag {number}": attention[:, :, number - 1, number - 1]
            for number in range(1, min(model.heads, model.window) + 1)
        },
        a=np.stack([course.a for course in courses]),
        losses={split: run.losses(split)[1][:, :, 0].T for split in SPLITS},
    )
    return draw_stages(found, _title(run))


@drawn
def lags_figure(run: NgramRun) -> Picture:
    """Draw every head's attention to every lag, before and after training (the mean over seeds)."""
    courses = [run.course(seed) for seed in run.recipe.seeds]
    sides = {
        "before": np.mean([course.attention[0] for course in courses], axis=0),
        "after": np.mean([course.attention[-1] for course in courses], axis=0),
    }
    model = run.recipe.model
    figure = picture(
        _title(run),
        "Attention of every head of the first layer to every lag, before and after training"
        + (f"; means of {len(courses)} seeds." if len(courses) > 1 else "."),
        0.9 + 0.28 * model.heads,
        columns=1 if model.window <= LAGS else 2,
    )
    cell = (figure.get_figwidth() - AROUND) / 2 / model.window
    every = -(-model.window // MARKS)
    for axes, (name, attention) in zip(figure.subplots(1, 2), sides.items(), strict=True):
        shown = shade(axes, attention)
        for (head, lag), weight in np.ndenumerate(attention) if cell > NUMBER else ():
            colour = PAPER if weight > 0.5 else INK
            axes.text(
                lag, head, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=SMALL
            )
        axes.set_xticks(range(0, model.window, every), range(1, model.window + 1, every))
        axes.set_yticks(range(model.heads), range(1, model.heads + 1))
        axes.set(title=f"{name} training", xlabel="lag", ylabel="head")
    figure.colorbar(shown, ax=figure.axes, label="attention", aspect=12)
    return figure


@drawn
def approach_figure(run: NgramRun, moments: Sequence[Sequence[Moment]], gap: float) -> Picture:
    """Draw the last stage: the distance to GIH by epoch and by a, and the growth of a.

    With `gap` above 0 and several epochs, the predicted slope is drawn too.
    """
    alone = len(moments[0]) == 1
    predicted = gap > 0 and not alone
    several = "each seed" if len(moments) > 1 else "the model"
    figure = picture(
        _title(run),
        "The last stage: the distance to the generalised induction head (GIH) by epoch and by the "
        "scale a, and how a grows. A line for each seed"
        + ("; dashed: the slope that is predicted where a is large." if predicted else "."),
        2.4,
        columns=2,
    )
    axes = figure.subplots(1, 3)
    for number, seed in enumerate(moments):
        epochs = [each.epoch for each in seed]
        scale = np.array([each.a for each in seed])
        distance = [each.distance for each in seed]
        label = several if number == 0 else None
        style = {"color": COLOURS[0], "linewidth": 1, "alpha": 0.6, "label": label}
        style |= {"marker": "o"} if alone else {}  # a line of one point would not be seen
        axes[0].plot(epochs, distance, **style)
        axes[1].plot(scale, distance, **style)
        axes[2].plot(epochs, scale, **style)
    if predicted:
        _predicted(axes[2], moments, gap)
    labels = (("epoch of the stage", "distance to GIH"), ("a", "distance to GIH"),
              ("epoch of the stage", "a"))  # fmt: skip
    for one, (x, y) in zip(axes, labels, strict=True):
        one.set(xlabel=x, ylabel=y)
    if any(each.distance > 0 for seed in moments for each in seed):
        axes[0].set_yscale("log")
        axes[1].set_yscale("log")
    for one in (axes[0], axes[2]):
        one.set_xscale("symlog", linthresh=1)  # epoch 0 is drawn, too
        one.set_xlim(left=0)
    handles = axes[2].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
    return figure


def transfer_figure(
    run: NgramRun, found: Sequence[Sequence[tuple[NgramProcess, Evaluation]]]
) -> Picture:
    """Draw losses and distance to GIH on chains of other lengths (left) and priors (right)."""
    trained, columns = run.recipe.process, []
    for name, kept in (("length", "alpha"), ("alpha", "length")):
        chosen = [
            number
            for number, (process, _) in enumerate(found[0])
            if getattr(process, kept) == getattr(trained, kept)
        ]
        chosen.sort(key=lambda number: getattr(found[0][number][0], name))
        losses = [[astuple(seed[number][1].expected) for number in chosen] for seed in found]
        columns.append(
            Transfer(
                varied=name,
                values=np.array([getattr(found[0][number][0], name) for number in chosen]),
                trained=getattr(trained, name),
                losses=np.array(losses),
                distance=np.array([[seed[n][1].distance for n in chosen] for seed in found]),
            )
        )
    return draw_transfer(columns, _title(run))


def _predicted(axes: Axes, moments: Sequence[Sequence[Moment]], gap: float) -> None:
    """Draw the predicted slope of a large a: da/dt ~ e^(−a·gap) gives a = log(t)/gap."""
    epochs = np.array([each.epoch for each in moments[0]])
    scale = np.mean([[each.a for each in seed] for seed in moments], axis=0)
    most = max(1, int(np.searchsorted(scale, 0.8 * scale[-1])))  # epoch 0 has no logarithm
    reach = epochs[max(1, most - 20) : most + 20]
    line = scale[most] + np.log(reach / epochs[most]) / gap
    axes.plot(reach, line, "--", color=COLOURS[1], label=f"slope 1/gap = {1 / gap:.2f}")


def _title(run: NgramRun) -> str:
    process = run.recipe.process
    parents = ", ".join(map(str, process.parents))
    return (
        f"{run_title(run.folder)}: {process.alphabet} symbols, parents {parents}, "
        f"α = {process.alpha:g}, {seed_text(run.recipe.seeds)}"
    )


@dataclass(frozen=True)
class Stages:
    """The data of a training in stages, for all seeds at the same epochs."""

    plan: Sequence[tuple[str, int]]
    """For each stage, the letters of the parameters it trains, and its number of epochs."""
    epochs: Int[np.ndarray, "epoch"]
    shares: Mapping[str, Float[np.ndarray, "seed epoch"]]
    """For each set of heads, its share of the sum of squared coefficients."""
    attention: Mapping[str, Float[np.ndarray, "serving epoch"]]
    """For each head, its attention to its lag, in the seeds that have it."""
    a: Float[np.ndarray, "seed epoch"]
    losses: Mapping[str, Float[np.ndarray, "seed epoch"]]


@drawn
def draw_stages(found: Stages, name: str) -> Picture:
    """Draw four panels, in which all stages have the same width."""
    models = len(found.a)
    seeds = f" Lines: means of {models} seeds; bands: lowest to highest." if models > 1 else ""
    many = max(len(found.shares), len(found.attention)) > NAMED
    grey = " Grey: those that stay lower, without bands." if many else ""
    figure = picture(
        name,
        "A training in stages, each as wide as the others and with epochs counted anew; above, "
        f"what it trains (c: the selector, w: the first layer, a: the second).{seeds}{grey}",
        3.7,
        columns=2,
    )
    scale = StageScale(found.plan)
    shown = scale.shown(found.epochs)
    panels: dict[str, Mapping[str, Float[np.ndarray, "seed epoch"]]] = {
        "share of c² of each set of heads": found.shares,
        "attention of each head to its own lag": found.attention,
        "scale of the second layer": {"a": found.a},
        "loss": found.losses,
    }
    axes = figure.subplots(2, 2).ravel()
    for one, (what, curves) in zip(axes, panels.items(), strict=True):
        named = _highest(curves)
        for colour, label in zip(COLOURS, named, strict=False):
            band(one, found.epochs[shown], curves[label][:, shown], colour, label)
        others = [curves[label].mean(axis=0)[shown] for label in curves if label not in named]
        if others:
            one.plot(
                found.epochs[shown], others[0], color=DIM, zorder=1, label=f"{len(others)} others"
            )
            one.plot(found.epochs[shown], np.transpose(others[1:]), color=DIM, zorder=1)
        scale.draw(one)
        one.set_title(what, pad=15)
        one.legend()
    return figure


def _highest(curves: Mapping[str, Float[np.ndarray, "seed epoch"]]) -> list[str]:
    """Return the names of the lines that are drawn in colour: all, or those that rise highest."""
    if len(curves) <= NAMED:
        return [*curves]
    peaks = {label: float(values.mean(axis=0).max()) for label, values in curves.items()}
    highest = sorted(curves, key=lambda label: -peaks[label])[: NAMED - 1]
    return [label for label in curves if label in highest]


class StageScale:
    """A scale of epochs: all stages have the same width, and are logarithmic within.

    Most changes happen at the beginning of a stage.
    """

    def __init__(self, plan: Sequence[tuple[str, int]]) -> None:
        self.letters = [letters for letters, _ in plan]
        self.ends = np.cumsum([0, *(epochs for _, epochs in plan)])
        self.spans = np.log1p(np.diff(self.ends))

    def place(self, epoch: Any) -> Any:
        """Return where an epoch is drawn: stage n takes the places from n to n + 1."""
        last = len(self.spans) - 1
        stage = np.clip(np.searchsorted(self.ends, epoch, side="right") - 1, 0, last)
        since = np.clip(epoch - self.ends[stage], 0, None)
        return stage + np.log1p(since) / self.spans[stage]

    def epoch(self, place: Any) -> Any:
        """Return the epoch at a place; the inverse of `place`."""
        stage = np.clip(np.floor(place), 0, len(self.spans) - 1).astype(int)
        return self.ends[stage] + np.expm1((place - stage) * self.spans[stage])

    def shown(self, epochs: np.ndarray) -> list[int]:
        """Return the indices of the epochs to draw: ends of stages, and others `NEAR` apart."""
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
        axes.set_xticks(ticks, [_tick(tick, self.ends) for tick in ticks])
        axes.minorticks_off()
        for number, letters in enumerate(self.letters):
            if number:
                axes.axvline(self.ends[number], color=FAINT, linewidth=0.8)
            where: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "bottom"}
            axes.text((number + 0.5) / len(self.letters), 1.01, letters, color=DIM, **where)
        axes.set_xlabel("epoch (counted anew in each stage)")


def _ticks(ends: np.ndarray) -> list[int]:
    """Return the ends of stages, and 10 and 1,000 epochs after their beginnings if they fit.

    If there are many stages, only every second end (or third, …) is returned.
    """
    stages = len(ends) - 1
    if stages > MARKED:
        return [int(end) for end in ends[:: -(-stages // ENDS)]]
    ticks = {0}
    for begin, end in itertools.pairwise(ends.tolist()):
        ticks |= {end, *(begin + since for since in (10, 1_000) if 5 * since < end - begin)}
    return sorted(ticks)


def _tick(epoch: int, ends: np.ndarray) -> str:
    """Return the label of a tick: epochs since the stage began."""
    stage = max(0, int(np.searchsorted(ends, epoch, side="left")) - 1)
    since = epoch - int(ends[stage])
    return f"{since / 1000:g}k" if since >= 1_000 else str(since)


PREDICTORS = {"model": COLOURS[0], "GIH": COLOURS[1], "Bayes": COLOURS[2], "truth": COLOURS[7]}
"""The predictors whose losses are drawn, each with its colour."""

VARIED = {"length": "length of the chain", "alpha": "α of the prior"}
"""Axis labels of the settings in which chains differ."""


@dataclass(frozen=True)
class Transfer:
    """Results of every seed's model on chains that differ from the trained ones in one setting."""

    varied: str
    """The setting in which the chains differ: length, or alpha."""
    values: Num[np.ndarray, "value"]
    trained: int | float
    """The value on which the models were trained."""
    losses: Float[np.ndarray, "seed value line"]
    """Expected losses, in the order of PREDICTORS."""
    distance: Float[np.ndarray, "seed value"]
    """The distance of the model to the generalised induction head (GIH)."""


@drawn
def draw_transfer(found: Sequence[Transfer], name: str) -> Picture:
    """Draw a column for each setting: the losses above, the distance to GIH below."""
    figure = picture(
        name,
        "Other chains than those trained on (dotted): above the expected loss of the model, of the "
        "generalised induction head (GIH), of Bayes' rule and of the truth; below the distance of "
        f"the model to GIH. {counted(len(found[0].losses), 'seed')}"
        + ("; bands: lowest to highest." if len(found[0].losses) > 1 else "."),
        3.6,
        columns=2,
    )
    axes = figure.subplots(2, len(found), sharex="col", squeeze=False)
    for column, each in enumerate(found):
        above, below = axes[:, column]
        for place, (label, colour) in enumerate(PREDICTORS.items()):
            band(above, each.values, each.losses[:, :, place], colour, label)
        band(below, each.values, each.distance, COLOURS[0], "model to GIH")
        below.set(xlabel=VARIED[each.varied], ylim=(0, None))
        for one in (above, below):
            one.set_xscale("log")
            one.axvline(each.trained, color=DIM, linestyle=":")
    axes[0, 0].set_ylabel("expected loss")
    axes[1, 0].set_ylabel("distance to GIH")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
