"""The progress of a training as numbers and text, for terminals and notebooks."""

import time
from collections import deque

import numpy as np

from hopscope.plots.terminal import sparkline
from hopscope.store import RunFolder

SMOOTHING = 0.95
"""Weight of the earlier mean in the exponential mean of the shown losses."""
CURVE = 32
"""The width of a curve of losses, in characters."""


class Pace:
    """Rate, time left and smoothed losses."""

    def __init__(self) -> None:
        self.marks: deque[tuple[float, int]] = deque(maxlen=200)
        self.smooth: np.ndarray | None = None
        self.history: list[np.ndarray] = []

    def start(self, folder: RunFolder, step: int) -> None:
        """Begin with a run at a step; discard the data of the run before."""
        self.recipe, self.name = folder.recipe, folder.name
        self.steps, self.unit = self.recipe.steps, self.recipe.unit
        self.levels = self.recipe.chances
        self.step, self.smooth = step, None
        self.marks.clear()  # marks of the run before
        self.history.clear()
        self.marks.append((time.monotonic(), step))

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        """Add the latest losses (split → [model, hop]), and smooth those of training."""
        self.step = step
        self.marks.append((time.monotonic(), step))
        if "train" not in latest:
            return
        train = latest["train"]
        old = train if self.smooth is None else self.smooth
        self.smooth = SMOOTHING * old + (1 - SMOOTHING) * train
        self.history.append(self.smooth.mean(0))

    def headline(self) -> str:
        """Return the step, the rate and the time left in one line."""
        (begun, first), (now, last) = self.marks[0], self.marks[-1]
        rate = (last - first) / (now - begun) if now > begun else 0.0
        left = f"{clock_time((self.steps - self.step) / rate)} left" if rate else "…"
        return f"{self.unit} {self.step:,} of {self.steps:,} · {rate:,.1f} {self.unit}s/s · {left}"

    def hop_rows(self) -> list[tuple[str, str, str]]:
        """Return for every hop its name, its loss (for a fleet with its range), and its curve."""
        if self.smooth is None:
            return []
        curves = np.stack(self.history)
        rows = []
        for name, column, course in zip(self._names(), self.smooth.T, curves.T, strict=True):
            spread = f" ({column.min():.3f} … {column.max():.3f})" if len(column) > 1 else ""
            curve = sparkline(course, CURVE, top=(max(self.levels, default=0.0) or 1.0) * 1.2)
            rows.append((name, f"{column.mean():.3f}{spread}", curve))
        return rows

    def chance(self) -> str:
        """Return the levels of chance in words; empty if unknown."""
        levels = ", ".join(dict.fromkeys(f"{level:.2f}" for level in self.levels))
        return f"training loss; chance is {levels}" if levels else ""

    def _names(self) -> list[str]:
        assert self.smooth is not None
        return self.recipe.loss_names(self.smooth.shape[1])


def clock_time(seconds: float) -> str:
    """Format seconds as H:MM:SS or M:SS."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
