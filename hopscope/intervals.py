"""How sure a number is: one rule for each kind of number, wherever it is shown.

* A share (so many right answers of so many): Wilson's interval.
* A mean of values between 0 and 1 (exact chances of right answers): Wilson's interval for as many
  yes-or-no answers as would have the same variance.
* A mean of any other values (losses of examples): the interval of a normal law.
* A mean over few questions of a language model: Student's t, corrected for many cells.
* A mean that is shown with its standard error: the same standard error, without a factor.

All intervals are of 95 %, and over whatever was drawn: questions, examples, chains.
"""

from collections.abc import Sequence
from functools import cache
from math import atan, cos, pi, sin, sqrt

import numpy as np

from hopscope.shapes import Float

NORMAL_95 = 1.959964
"""Standard errors to both sides of a mean that hold 95 % of a normal law."""

Interval = tuple[float, float]
"""An interval of a number: its lower and its upper end."""


def share(right: int, count: int) -> Interval:
    """The interval of a share: Wilson's score interval (1927).

    >>> [round(end, 3) for end in share(9, 10)]
    [0.596, 0.982]
    """
    return _wilson(right / count, float(count))


def mean_share(values: Sequence[float]) -> Interval:
    """The interval of a mean of values between 0 and 1.

    It is Wilson's, with the number of yes-or-no answers that would have the same variance, so that
    it stays within 0 and 1. A few values may be nearly equal by chance: each of N values counts as
    N² answers at most, and as one if all are equal.
    """
    count = len(values)
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / max(1, count - 1)
    equal = mean * (1 - mean) / variance if variance > 0 else 1.0
    return _wilson(mean, count * min(max(1.0, equal), float(count**2)))


def mean(values: Float[np.ndarray, "value"]) -> Interval:
    """The interval of a mean of any values, by a normal law. Of a single value no spread is known:
    both ends are the value itself.
    """
    middle = float(values.mean())
    half = NORMAL_95 * float(standard_error(values)) if len(values) > 1 else 0.0
    return middle - half, middle + half


def student(values: Float[np.ndarray, "value"], cells: int = 1) -> Interval:
    """The interval of a mean of a few values, by Student's t. Of many cells that are looked at
    together each gets the level 5 % / cells (Bonferroni).

    >>> [round(end, 3) for end in student(np.array([1.0, 2.0, 3.0, 4.0]))]
    [0.446, 4.554]
    """
    quantile = _student(len(values) - 1, 0.05 / cells)
    middle, half = float(values.mean()), quantile * float(standard_error(values))
    return middle - half, middle + half


@cache
def _student(freedom: int, level: float) -> float:
    """What Student's t passes, to both sides together, with the probability `level`: by bisection
    of its distribution function, a finite sum for whole degrees of freedom.

    >>> [round(_student(*each), 3) for each in ((1, 0.05), (2, 0.05), (9, 0.01), (10**4, 0.05))]
    [12.706, 4.303, 3.25, 1.96]
    """
    low, high = 0.0, 1.0
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
    part: Float[np.ndarray, "value *rest"], whole: Float[np.ndarray, "value *rest"]
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """The ratio of two means over the same values, and half its interval (delta method)."""
    total = whole.sum(0)
    ratio = part.sum(0) / total
    spread = np.square(part - ratio * whole).sum(0) * len(part) / max(1, len(part) - 1)
    return np.asarray(ratio), np.asarray(NORMAL_95 * np.sqrt(spread) / total)


def standard_error(values: Float[np.ndarray, "value *rest"]) -> Float[np.ndarray, "*rest"]:
    """The standard error of the mean over the first axis; not a number for fewer than two values.

    >>> float(standard_error(np.array([1.0, 2.0, 3.0, 4.0])).round(4))
    0.6455
    """
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    error: np.ndarray = np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))
    return error


def _wilson(share: float, count: float) -> Interval:
    """Wilson's interval; the count may be a fraction, where it stands for a variance."""
    room = NORMAL_95 * NORMAL_95 / count
    middle = (share + room / 2) / (1 + room)
    half = NORMAL_95 * sqrt(share * (1 - share) / count + room / (4 * count)) / (1 + room)
    return max(0.0, middle - half), min(1.0, middle + half)
