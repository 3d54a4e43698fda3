"""How well linear maps do on examples that they were not fitted on, with 95 % intervals.

Positions of one example are not independent of one another, so intervals go by examples.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.intervals import NORMAL_95
from hopscope.tracing.linear import TINY, Fit, by_class

TEMPERATURES = tuple(2.0**power for power in range(-12, 9))
"""Factors of a classifier's scores that are tried, to calibrate it."""

Found = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""For every group of targets: the share that is there, half its interval, the log-loss."""


class Marks(ABC):
    """Marks of one place; rows come in lots."""

    def __init__(self, fit: Fit, examples: int) -> None:
        groups = len(fit.middle)
        self.fit, self.examples = fit, examples
        self.part = torch.zeros(examples, groups, dtype=torch.float64)
        self.whole = torch.zeros(examples, groups, dtype=torch.float64)

    @abstractmethod
    def add(
        self,
        example: Int[Tensor, "row"],
        x: Float[Tensor, "row width"],
        y: Float[Tensor, "row group size"] | Int[Tensor, "row group"],
    ) -> None:
        """Mark a read-out on more rows: the example of each, what stands there, and its targets."""

    @abstractmethod
    def found(self) -> Found:
        """The marks of all rows together."""

    def _ratio(self) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the parts over sum of the wholes, and half its interval (delta method)."""
        part, whole = self.part.numpy(), self.whole.numpy()
        total = np.maximum(whole.sum(0), TINY)
        ratio = part.sum(0) / total
        spread = np.square(part - ratio * whole).sum(0) * len(part) / max(1, len(part) - 1)
        return ratio, NORMAL_95 * np.sqrt(spread) / total


class VarianceMarks(Marks):
    """R²: the share of the variance of vectors that a map explains; 0 where nothing varies."""

    def add(self, example: Tensor, x: Tensor, y: Tensor) -> None:
        y = y.double()
        self.part.index_add_(0, example, (self.fit(x) - y).square().sum(-1))
        self.whole.index_add_(0, example, (y - self.fit.middle).square().sum(-1))

    def found(self) -> Found:
        ratio, half = self._ratio()
        varies = self.whole.numpy().sum(0) > TINY
        return np.where(varies, 1 - ratio, 0.0), np.where(varies, half, 0.0), None


class AccuracyMarks(Marks):
    """Accuracy of a classifier with every class counting alike, from guessing (0) to 1; 0 where
    there is one class, which guessing knows.
    """

    def __init__(self, fit: Fit, examples: int) -> None:
        super().__init__(fit, examples)
        occurs = fit.middle.isfinite()
        self.classes = occurs.sum(-1)
        groups, size = fit.middle.shape
        self.count = torch.zeros(groups, size, dtype=torch.float64)
        self.hits: list[tuple[Tensor, Tensor, Tensor]] = []
        self.loss = torch.zeros(2, len(TEMPERATURES), groups, size, dtype=torch.float64)
        self.seen = torch.zeros(2, groups, size, dtype=torch.float64)

    def add(self, example: Tensor, x: Tensor, y: Tensor) -> None:
        scores, size = self.fit(x), self.count.shape[1]
        own = scores.gather(-1, y[..., None])[..., 0]
        self.hits.append((example, y, (scores.argmax(-1) == y)))
        self.count += by_class(torch.ones(y.shape), y, size)
        for half in (0, 1):
            mine = example % 2 == half
            some, its, right, sure = scores[mine], y[mine], own[mine], own[mine].isfinite()
            self.seen[half] += by_class(sure.double(), its, size)
            for number, factor in enumerate(TEMPERATURES):
                loss = torch.logsumexp(factor * some, -1) - factor * right
                self.loss[half, number] += by_class(torch.where(sure, loss, 0), its, size)

    def found(self) -> Found:
        weight = torch.where(self.count > 0, 1 / self.count.clamp_min(1), 0.0)
        for example, right, hit in self.hits:
            mine = weight.T.gather(0, right)
            self.part.index_add_(0, example, mine * hit)
            self.whole.index_add_(0, example, mine)
        accuracy, half = self._ratio()
        classes = self.classes.numpy()
        chance = 1 / np.maximum(classes, 2)
        share = np.where(classes > 1, (accuracy - chance) / (1 - chance), 0.0)
        return share, half / (1 - chance), self._log_loss()

    def _log_loss(self) -> np.ndarray:
        """At the temperature that is best for the other half of the examples."""
        occurs = (self.seen > 0).double()
        means = (self.loss / self.seen[:, None].clamp_min(1)).sum(-1)
        means = means / occurs.sum(-1).clamp_min(1)[:, None]
        best = means.argmin(1)
        crossed = means.gather(1, best.flip(0)[:, None])[:, 0].mean(0)
        found: np.ndarray = crossed.numpy()
        return found
