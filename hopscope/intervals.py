"""95 % confidence intervals, with one method for each kind of number.

* A share (count of right answers): Wilson's interval.
* A mean of values between 0 and 1 (exact probabilities of right answers): Agresti and Coull's
  interval.
* A mean of other values (losses of examples), and a ratio of two means: Student's t, corrected for
  the number of cells if many cells are looked at together.
* A mean shown with its standard error: the same standard error, without a factor.

All intervals are over what was sampled: questions, examples or chains. Losses are skewed (a few
examples have most of the loss): over a few hundred examples of a model that has learned its task,
the interval by Student's t covers the true mean less often than in 95 % of samples.
"""

from collections.abc import Sequence
from functools import cache
from math import atan, cos, pi, sin, sqrt

import numpy as np

from hopscope.shapes import Float

NORMAL_95 = 1.959964
"""The interval of this many standard errors on each side of the mean has 95 % of a normal
distribution."""

MANY = 10_000
"""From this many degrees of freedom on, Student's t equals the normal distribution to four
digits."""

Interval = tuple[float, float]
"""An interval of a number: its lower and its upper end."""


def share(right: int, count: int) -> Interval:
    """The interval of a share: Wilson's score interval (1927).

    >>> [round(end, 3) for end in share(9, 10)]
    [0.596, 0.982]
    """
    part, room = right / count, NORMAL_95 * NORMAL_95 / count
    middle = (part + room / 2) / (1 + room)
    half = NORMAL_95 * sqrt(part * (1 - part) / count + room / (4 * count)) / (1 + room)
    return (middle - half if right else 0.0), (middle + half if right < count else 1.0)


def mean_share(values: Sequence[float]) -> Interval:
    """The interval of a mean of values between 0 and 1: the normal approximation after adding
    nearly four more values, half of them 0 and half 1 (Agresti & Coull 1998, for yes-or-no
    answers). This keeps the interval from being too narrow if the values are nearly equal by
    chance, as values near 1 often are.

    >>> [round(end, 3) for end in mean_share([1.0] * 9 + [0.0])]
    [0.574, 1.0]
    """
    found = np.asarray(values, dtype=float)
    more = NORMAL_95 * NORMAL_95
    count = len(found) + more
    middle = (float(found.sum()) + more / 2) / count
    added = more / 2 * ((1 - middle) ** 2 + middle**2)
    half = NORMAL_95 * sqrt((float(np.square(found - middle).sum()) + added) / count / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def mean(values: Float[np.ndarray, "value"], cells: int = 1) -> Interval:
    """The interval of a mean of any values. For a single value, whose spread is not known, both
    ends are the value itself. If many cells are looked at together, the level of each is
    5 % / cells (Bonferroni).

    >>> [round(end, 3) for end in mean(np.array([1.0, 2.0, 3.0, 4.0]))]
    [0.446, 4.554]
    """
    middle, many = float(values.mean()), len(values) > 1
    half = _student(len(values) - 1, 0.05 / cells) * float(standard_error(values)) if many else 0.0
    return middle - half, middle + half


@cache
def _student(freedom: int, level: float) -> float:
    """The two-sided critical value of Student's t: |t| is larger with probability `level`. Found by
    bisection of the distribution function, a finite sum for whole degrees of freedom.

    >>> [round(_student(*each), 3) for each in ((1, 0.05), (2, 0.05), (9, 0.01), (10**9, 0.05))]
    [12.706, 4.303, 3.25, 1.96]
    """
    freedom, low, high = min(freedom, MANY), 0.0, 1.0
    while _within(high, freedom) < 1 - level:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < 1 - level else (low, middle)
    return high


def _within(value: float, freedom: int) -> float:
    """The probability that Student's t lies between -value and value (Abramowitz & Stegun 26.7)."""
    angle = atan(value / sqrt(freedom))
    term, total, odd = (cos(angle), 0.0, 1) if freedom % 2 else (1.0, 0.0, 0)
    for number in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (number - 1) / number
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def ratio(
    part: Float[np.ndarray, "value *rest"],
    whole: Float[np.ndarray, "value *rest"],
    cells: int = 1,
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """The ratio of two means over the same values, and half the width of its interval (delta
    method; zero for fewer than two values).
    """
    total, count = whole.sum(0), len(part)
    ratio = part.sum(0) / total
    if count < 2:
        return np.asarray(ratio), np.zeros_like(ratio)
    spread = np.square(part - ratio * whole).sum(0) * count / (count - 1)
    half = _student(count - 1, 0.05 / cells) * np.sqrt(spread) / total
    return np.asarray(ratio), np.asarray(half)


def standard_error(values: Float[np.ndarray, "value *rest"]) -> Float[np.ndarray, "*rest"]:
    """The standard error of the mean over the first axis; NaN for fewer than two values.

    >>> float(standard_error(np.array([1.0, 2.0, 3.0, 4.0])).round(4))
    0.6455
    """
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    error: np.ndarray = np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))
    return error
