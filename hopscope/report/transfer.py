"""How a trained n-gram model does on chains of other lengths, and of other priors, as a figure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num

from hopscope.report.look import COLOURS, DIM, Picture, picture
from hopscope.report.stages import band
from hopscope.report.symbols import counted

LINES = {"model": COLOURS[0], "GIH": COLOURS[1], "Bayes": COLOURS[2], "truth": COLOURS[7]}
"""The predictors whose losses are drawn, each with its colour."""

NAMES = {"length": "length of the chain", "alpha": "α of the prior"}
"""The settings in which chains differ, as an axis says them."""


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


def draw_transfer(found: Sequence[Transfer], title: str) -> Picture:
    """A column for each: above the losses, below the distance to the induction head."""
    figure = picture(
        title,
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
        for place, (label, colour) in enumerate(LINES.items()):
            band(above, each.values, each.losses[:, :, place], colour, label)
        band(below, each.values, each.distance, COLOURS[0], "model to GIH")
        below.set(xlabel=NAMES[each.varied], ylim=(0, None))
        for one in (above, below):
            one.set_xscale("log")
            one.axvline(each.trained, color=DIM, linestyle=":")
    axes[0, 0].set_ylabel("expected loss")
    axes[1, 0].set_ylabel("distance to GIH")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
