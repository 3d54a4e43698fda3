"""When something happened in a training: one rule for each event, wherever it is asked for.

* A hop is learned at the step where the mean of the last ten training losses first falls below
  two thirds of chance (0.5 for four chains with facts in order), if a validation loss ever does so
  too: otherwise the examples were learned by heart. `Run.learned` applies this rule for `show`,
  `emergence`, the tables of the papers and figures.
* A path of attention has emerged where its mean, which is known at checkpoints only, first rises
  above one half on a straight line between two of them.
* The best late checkpoint is the one of the last tenth with the lowest validation loss.
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hopscope.shapes import Float, Int

HALF = 0.5
"""Mean attention above which a path has emerged (Musat 2025, §9)."""
LEARNED = 2 / 3
"""Share of chance below which a loss counts as learned; 0.5 for the paper's four chains, where
chance is 0.75."""
WINDOW = 10
"""Training losses that are averaged, since the loss of a single batch is noisy."""
LATE = 0.9
"""Checkpoints after this share of the training are late: the last tenth."""


def learned_below(chances: Sequence[float]) -> Float[np.ndarray, "hop"]:
    """The loss below which each hop counts as learned, given its loss at chance."""
    return LEARNED * np.array(chances)


def learned(
    steps: Int[np.ndarray, "step"],
    train: Float[np.ndarray, "step column"],
    validation: Float[np.ndarray, "check column"],
    level: float | Float[np.ndarray, "column"],
) -> list[int | None]:
    """For each column (a hop, or a model), the step at which it was learned: below its level."""
    known: np.ndarray = np.any(validation < level, axis=0)
    found = first_below(steps, train, level)
    return [step if at_all else None for step, at_all in zip(found, known, strict=True)]


def first_below(
    steps: Int[np.ndarray, "step"],
    losses: Float[np.ndarray, "step column"],
    level: float | Float[np.ndarray, "column"],
) -> list[int | None]:
    """For each column, the step at which its loss, averaged over ten steps, falls below a level."""
    if len(losses) < WINDOW:
        return [None] * losses.shape[1]
    means = sliding_window_view(losses.astype(float), WINDOW, axis=0).mean(axis=-1)
    below = means < level
    first = below.argmax(axis=0)
    return [
        int(steps[place + WINDOW - 1]) if below[place, column] else None
        for column, place in enumerate(first)
    ]


def crossing(steps: Sequence[int], values: Float[np.ndarray, "step"]) -> float | None:
    """Where values that are known at a few steps first rise above one half, between two steps."""
    above = values > HALF
    if not above.any():
        return None
    first = int(above.argmax())
    if first == 0:
        return float(steps[0])
    before, after = float(values[first - 1]), float(values[first])
    share = (HALF - before) / (after - before)
    return float(steps[first - 1] + share * (steps[first] - steps[first - 1]))


def best_late_checkpoint(
    steps: Int[np.ndarray, "step"], losses: Float[np.ndarray, "step"], checkpoints: Sequence[int]
) -> int:
    """The late checkpoint with the lowest validation loss; at a constant learning rate the very
    last one may sit on a spike.
    """
    at = dict(zip(steps.tolist(), losses.tolist(), strict=True))
    late = [step for step in checkpoints if step >= LATE * max(checkpoints) and step in at]
    return min(late, key=at.__getitem__, default=max(checkpoints))
