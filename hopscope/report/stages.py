"""A training in stages as a figure: sets of heads, attention, the scale a and losses, by epoch."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from hopscope.report.look import COLOURS, DIM, FAINT, Picture, picture, width

ONE_COLUMN = 4.0
"""Inches up to which panels stand below each other."""
BAND = 0.2
"""Opacity of the band from the least to the greatest of the seeds."""
NEAR = 0.01
"""Points nearer to each other than this part of a stage are drawn as one."""


@dataclass(frozen=True)
class Stages:
    """What changed in each seed's training, at the same epochs."""

    plan: Sequence[tuple[str, int]]
    """The letters of what each stage trains, and its number of epochs."""
    epochs: Int[np.ndarray, "epoch"]
    shares: Mapping[str, Float[np.ndarray, "seed epoch"]]
    """For each set of heads, its part in the sum of squared coefficients."""
    attention: Mapping[str, Float[np.ndarray, "serving epoch"]]
    """For each head, its attention to its lag, in the seeds of which it is known."""
    a: Float[np.ndarray, "seed epoch"]
    losses: Mapping[str, Float[np.ndarray, "seed epoch"]]


def draw_stages(found: Stages, title: str) -> Picture:
    """Four panels; each stage is as wide as the others."""
    models = len(found.a)
    seeds = f" Lines: means of {models} seeds; bands: lowest to highest." if models > 1 else ""
    across = 2 if width(2) > ONE_COLUMN else 1
    figure = picture(
        title,
        "A training in stages, each as wide as the others and with epochs counted anew; above, "
        f"what it trains (c: the selector, w: the first layer, a: the second).{seeds}",
        1.75 * 4 / across + 0.4,
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
    axes = figure.subplots(4 // across, across).ravel()
    for one, (name, curves) in zip(axes, panels.items(), strict=True):
        for number, (label, values) in enumerate(curves.items()):
            colour = COLOURS[number % len(COLOURS)]
            band(one, found.epochs[shown], values[:, shown], colour, label)
        scale.draw(one)
        one.set_title(name, pad=15)
        one.legend()
    return figure


def band(axes: Axes, x: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    """The mean over seeds, and a band from the least to the largest."""
    if len(values) > 1:
        axes.fill_between(x, values.min(0), values.max(0), color=colour, alpha=BAND, linewidth=0)
    axes.plot(x, values.mean(0), color=colour, label=label)


class StageScale:
    """Epochs, each stage as wide as the others and logarithmic: most happens at its beginning."""

    def __init__(self, plan: Sequence[tuple[str, int]]) -> None:
        self.letters = [letters for letters, _ in plan]
        self.ends = np.cumsum([0, *(epochs for _, epochs in plan)])
        self.spans = np.log1p(np.diff(self.ends))

    def place(self, epoch: Any) -> Any:
        """Where an epoch is drawn: stage n takes the places from n to n + 1."""
        last = len(self.spans) - 1
        stage = np.clip(np.searchsorted(self.ends, epoch, side="right") - 1, 0, last)
        since = np.clip(epoch - self.ends[stage], 0, None)
        return stage + np.log1p(since) / self.spans[stage]

    def epoch(self, place: Any) -> Any:
        """The epoch that is drawn at a place; the inverse of `place`."""
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
        axes.set_xticks(ticks, [_tick(tick, self.ends) for tick in ticks])
        axes.minorticks_off()
        for number, letters in enumerate(self.letters):
            if number:
                axes.axvline(self.ends[number], color=FAINT, linewidth=0.8)
            where: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "bottom"}
            axes.text((number + 0.5) / len(self.letters), 1.01, letters, color=DIM, **where)
        axes.set_xlabel("epoch (counted anew in each stage)")


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
