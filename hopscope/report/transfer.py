"""How a trained n-gram model does on chains of other lengths, and of other priors, as a figure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num
from matplotlib.figure import Figure

from hopscope.report.curves import COLOURS
from hopscope.report.stages import band

LINES = {"model": COLOURS[0], "GIH": COLOURS[1], "Bayes": COLOURS[2], "truth": COLOURS[7]}
"""The predictors whose losses are drawn, each with its colour."""


@dataclass(frozen=True)
class Transfer:
    """Every seed's model on chains that differ in one thing from those it was trained on."""

    varied: str
    """The setting in which the chains differ: length, or alpha."""
    values: Num[np.ndarray, "value"]
    trained: int | float
    """The value on which the models were trained."""
    losses: Float[np.ndarray, "seed value line"]
    """Expected losses, in the order of LINES."""
    distance: Float[np.ndarray, "seed value"]
    """The distance of the model to the generalised induction head (GIH)."""


def draw_transfer(found: Sequence[Transfer], title: str) -> Figure:
    """A column for each: above the losses, below the distance to the induction head."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, len(found), sharex="col")
    for column, each in enumerate(found):
        above, below = axes[:, column]
        for place, (label, colour) in enumerate(LINES.items()):
            band(above, each.values, each.losses[:, :, place], colour, label)
        band(below, each.values, each.distance, COLOURS[0], "model to GIH")
        above.set(ylabel="expected loss")
        below.set(ylabel="distance", xlabel=each.varied, ylim=(0, None))
        for one in (above, below):
            one.set_xscale("log")
            one.axvline(each.trained, color="#999999", linestyle=":")
            one.spines[["top", "right"]].set_visible(False)
            one.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure
