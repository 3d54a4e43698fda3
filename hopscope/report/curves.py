"""The loss of every hop during training, as a figure."""

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from hopscope.facts import symbol_name
from hopscope.report.look import COLOURS, DIM, Picture, drawn, picture
from hopscope.report.names import run_title
from hopscope.training import Run

WINDOW = 25
"""Steps over which a drawn curve is smoothed; when a hop is learned is told by milestones."""
POINTS = 500
"""A longer curve is thinned to this many points, or up to twice as many."""
DOTS = 50
"""Validation losses that are drawn, at most: at the end of a training there are many."""
FULL_SCALE = 1.6
"""Height of the axis in guessing levels; the first steps are worse, and say little."""


@drawn
def loss_curves(run: Run) -> Picture:
    """Training loss (smoothed) and validation loss of every hop; a band spans a fleet."""
    several, level = len(run.recipe.seeds) > 1, run.recipe.task.chance()
    band = " Bands: from the lowest to the highest of the models." if several else ""
    figure = picture(
        run_title(run.folder),
        f"Loss of each hop during training, the mean of {WINDOW} steps; dots: validation. Dotted "
        f"line: guessing.{band} The axis ends at {FULL_SCALE:g}{' times guessing' * (level > 0)}.",
        2.4,
    )
    axes = figure.subplots()
    for hop, number in enumerate(run.recipe.task.asked_hops()):
        _hop(axes, run, hop, symbol_name(f"x{number}"))
    axes.axhline(level, color=DIM, linestyle=":", label="guess")
    axes.set(xlabel="step", ylabel="loss", ylim=(0, FULL_SCALE * (level or 1.0)), xlim=(0, None))
    axes.legend(loc="upper right")
    return figure


def _hop(axes: Axes, run: Run, hop: int, name: str) -> None:
    """One hop's course: a line, a band if there are several models, and dots."""
    (steps, losses), (checked, validation) = run.losses("train"), run.losses("validation")
    if not len(steps):
        return
    shown = slice(None, None, max(1, len(steps) // POINTS))
    smooth, colour = smoothed(losses)[shown, :, hop], COLOURS[hop % len(COLOURS)]
    if losses.shape[1] > 1:
        low, high = smooth.min(1), smooth.max(1)
        axes.fill_between(steps[shown], low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(steps[shown], smooth.mean(1), color=colour, label=name)
    dots = spread(checked)
    axes.plot(checked[dots], validation[dots, :, hop].mean(1), ".", color=colour)


def spread(steps: Int[np.ndarray, "step"]) -> Int[np.ndarray, "dot"]:
    """Which of these steps to draw as dots: at most DOTS, as far from each other as can be."""
    if not len(steps):
        return np.arange(0)
    return np.unique(np.searchsorted(steps, np.linspace(steps[0], steps[-1], DOTS)))


def smoothed(losses: Float[np.ndarray, "step model hop"]) -> Float[np.ndarray, "step model hop"]:
    """The mean over the last WINDOW steps."""
    if len(losses) == 0:
        return losses
    sums = np.cumsum(losses, axis=0, dtype=float)
    sums[WINDOW:] -= sums[:-WINDOW].copy()
    counts = np.minimum(np.arange(1, len(losses) + 1), WINDOW)
    return sums / counts[:, None, None]
