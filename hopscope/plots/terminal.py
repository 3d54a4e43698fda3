"""Curves in a terminal: sparklines and plots of text. NaN leaves a gap."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hopscope.shapes import Float

TICKS = "▁▂▃▄▅▆▇█"
MARKS = "123456789abcdefghijklmnopqrstuvwxyz"
PLOT_WIDTH, PLOT_HEIGHT = 64, 12
MARGIN = 8
"""Columns next to a plot for the numbers of its axis."""


def sparkline(values: Sequence[float] | np.ndarray, width: int = 24, top: float = 1.0) -> str:
    """Return a row of bars, each the mean of a part of the values; a bar is full at `top`.

    >>> sparkline([0.0, 0.5, 1.0], width=3)
    '▁▅█'
    """
    if len(values) == 0:
        return ""
    shares = np.array_split(np.asarray(values, float), min(width, len(values)))
    return "".join(_bar(float(share.mean()) / top) for share in shares)


def _bar(level: float) -> str:
    return " " if np.isnan(level) else TICKS[round(min(max(level, 0), 1) * (len(TICKS) - 1))]


def plot(
    steps: np.ndarray,
    losses: Float[np.ndarray, "step hop"],
    levels: Sequence[float],
    width: int = 80,
    hops: Sequence[int] | None = None,
) -> str:
    """Draw every hop's curve in one box: digits are the hop's number (default: from 1), dotted
    lines are chance. A step fills several columns if there are few.
    """
    room = max(MARGIN, min(PLOT_WIDTH, width - MARGIN))
    begins = np.arange(room) * len(losses) // room
    parts = [losses[begin : max(begin + 1, end)] for begin, end in pairwise([*begins, len(losses)])]
    shares = [
        (number, column, float(part[:, hop].mean()))
        for hop, number in reversed([*enumerate(hops or range(1, losses.shape[1] + 1))])
        for column, part in enumerate(parts)
        if np.isfinite(part[:, hop].mean())
    ]
    top = max([*levels, *(value for *_, value in shares)]) * 1.05
    grid = [[" "] * room for _ in range(PLOT_HEIGHT)]
    for level in levels:
        grid[_row(level, top)] = ["·"] * room
    for number, column, value in shares:
        grid[_row(value, top)][column] = MARKS[(number - 1) % len(MARKS)]
    labels = {PLOT_HEIGHT - 1: "0", 0: _number(top)}
    labels |= {_row(level, top): _number(level) for level in levels}
    lines = [f"{labels.get(row, ''):>5} │{''.join(cells)}" for row, cells in enumerate(grid)]
    axis = f"{'':>5} └{'─' * room}"
    return "\n".join([*lines, axis, f"{'':>7}0{f' step {steps[-1]}':>{room - 1}}"])


def _number(value: float) -> str:
    """Return a number in at most five characters.

    >>> [_number(value) for value in (0.0117, 1.0512, 12.34, 1e6, 0.00001)]
    ['0.012', '1.05', '12.3', '1e+06', '1e-05']
    """
    texts = [f"{value:.{digits}g}" for digits in (3, 2, 1)]
    return next((text for text in texts if len(text) <= 5), texts[-1])


def _row(value: float, top: float) -> int:
    return int((PLOT_HEIGHT - 1) * (1 - min(max(value / top, 0), 1)) + 0.5)
