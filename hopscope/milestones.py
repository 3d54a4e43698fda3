"""When events of a training happened, with one rule for each kind of event.

* A hop is learned at the step where the mean of the last ten training losses first falls below
  two thirds of chance (0.5 for four chains with facts in order), after the last validation before
  the first whose loss is below it, too. Earlier, training examples are memorised, or the losses of
  a plateau are low by chance. `Run.learned` applies this rule for `show`, `emergence`, the tables
  of the papers and figures.
* A path has emerged where its mean attention first rises above one half. Attention is known at
  checkpoints only, and interpolated linearly between them.
* The best late checkpoint is the one in the last tenth of the training with the lowest validation
  loss.
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
"""How many training losses are averaged, since the loss of a single batch is noisy."""
LATE = 0.9
"""Checkpoints after this share of the training are late: the last tenth."""


def learned_below(chances: Sequence[float]) -> Float[np.ndarray, "hop"]:
    """The loss below which each hop counts as learned, given its loss at chance."""
    return LEARNED * np.array(chances)


def learned(
    steps: Int[np.ndarray, "step"],
    train: Float[np.ndarray, "step column"],
    checked: Int[np.ndarray, "check"],
    validation: Float[np.ndarray, "check column"],
    level: float | Float[np.ndarray, "column"],
) -> list[int | None]:
    """For each column (a hop or a model), the step at which it was learned: its training loss,
    averaged over ten steps, is first below its level after all validations (at the steps `checked`)
    that precede the first below it. None if either never is.
    """
    not_yet = np.logical_and.accumulate(~(validation < level), axis=0)
    last = np.max(np.where(not_yet, checked[:, None], -1), axis=0, initial=-1)
    known: np.ndarray = np.any(validation < level, axis=0)
    found = first_below(steps, train, level, last)
    return [step if at_all else None for step, at_all in zip(found, known, strict=True)]


def first_below(
    steps: Int[np.ndarray, "step"],
    losses: Float[np.ndarray, "step column"],
    level: float | Float[np.ndarray, "column"],
    after: int | Int[np.ndarray, "column"] = -1,
) -> list[int | None]:
    """For each column, the first step (after the step `after`) at which its loss, averaged over ten
    steps, is below the level; None if it never is.
    """
    if len(losses) < WINDOW:
        return [None] * losses.shape[1]
    means = sliding_window_view(losses.astype(float), WINDOW, axis=0).mean(axis=-1)
    below = (means < level) & (steps[WINDOW - 1 :, None] > after)
    first = below.argmax(axis=0)
    return [
        int(steps[place + WINDOW - 1]) if below[place, column] else None
        for column, place in enumerate(first)
    ]


def crossing(steps: Sequence[int], values: Float[np.ndarray, "step"]) -> float | None:
    """The step at which values first rise above one half, interpolated linearly between the given
    steps; None if they never do.
    """
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
    """The late checkpoint with the lowest validation loss (the last one may be on a spike if the
    learning rate is constant); the last checkpoint if none has a validation loss.
    """
    at = dict(zip(steps.tolist(), losses.tolist(), strict=True))
    late = [step for step in checkpoints if step >= LATE * max(checkpoints) and step in at]
    return min(late, key=at.__getitem__, default=max(checkpoints))
