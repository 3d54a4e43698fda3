"""Losses on their way from the device to the store, and the watch for divergence."""

import math

import numpy as np
import torch
from torch import Tensor

from hopscope.configs import Experiment
from hopscope.errors import Diverged
from hopscope.store.metrics import loss_rows, losses_file
from hopscope.store.tables import METRICS

DIVERGED_AT = 100.0
"""Times the loss of an untrained answer; no mistake of a working training is that large."""


class Ledger:
    """Collects losses step by step; every commit takes away a part of the metrics."""

    def __init__(self, experiment: Experiment, first_step: int) -> None:
        self.experiment = experiment
        self.start = first_step
        self.limit = DIVERGED_AT * max(1.0, experiment.chance)
        self.pending: dict[str, list[tuple[int, Tensor]]] = {"train": [], "validation": []}
        self.done: list[dict[str, np.ndarray]] = []
        self.latest: dict[str, np.ndarray] = {}

    def note(self, split: str, step: int, losses: Tensor) -> None:
        """Keep the losses of a step, which may still be on the device."""
        self.pending[split].append((step, losses))

    def settle(self, last_good: str) -> None:
        """Fetch what is pending; a loss out of bounds is a Diverged that names the way back."""
        for split, entries in self.pending.items():
            if not entries:
                continue
            steps = np.array([step for step, _ in entries], np.int32)
            losses = torch.stack([tensor for _, tensor in entries]).float().cpu().numpy()
            self._check(steps, losses, last_good)
            self.done.append(loss_rows(split, self.experiment, steps, losses))
            self.latest[split] = losses[-1]
            entries.clear()

    def take(self, step: int) -> dict[str, bytes]:
        """The file of everything settled since the last commit."""
        if not self.done:
            return {}
        data = losses_file(self.done)
        name = METRICS.part_name(self.start, step)
        self.done, self.start = [], step
        return {name: data}

    def _check(self, steps: np.ndarray, losses: np.ndarray, last_good: str) -> None:
        bad = ~(losses < self.limit)  # also true for NaN
        if not bad.any():
            return
        row, member, hop = (int(axis[0]) for axis in np.nonzero(bad))
        value = losses[row, member, hop]
        what = "is not a number" if math.isnan(value) else f"is {value:.3g}"
        which, seed = self.experiment.asked_hops()[hop], self.experiment.seeds[member]
        raise Diverged(
            f"the loss of hop {which} {what} at step {steps[row]} (seed {seed}); "
            f"the last good checkpoint is {last_good}: lower training.lr, or add training.warmup"
        )
