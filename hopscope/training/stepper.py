"""`TrainingStepper`: trains an experiment over facts, with its checkpoints and metrics."""

import math
import time
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from hopscope.configs import Experiment
from hopscope.errors import RunMismatch
from hopscope.runs.checkpoint import read_tensors, to_safetensors, weights_at
from hopscope.runs.stepper import MakeStepper, StepLosses
from hopscope.store import RunFolder
from hopscope.store.checkpoints import (
    checkpoint_name,
    checkpoint_steps,
    diverged,
    optimiser_name,
)
from hopscope.store.metrics import loss_rows, losses_file
from hopscope.store.tables import METRICS, merged_tables
from hopscope.training.device import check_training, device_of, precision_of
from hopscope.training.trainer import Trainer

FETCH_AFTER = {"cpu": 0.0, "cuda": 0.5}
"""The seconds between two fetches of losses from the device. Fetching synchronises a GPU."""
DIVERGED_AT = 100.0
"""A training has diverged if a loss exceeds this multiple of the loss at chance."""
CALMER = "lower training.lr, or add training.warmup"
"""The advice in the error of a divergence."""


def prepare(experiment: Experiment, device: str) -> MakeStepper:
    """Check that the device exists and has enough memory; returns a function that makes the stepper
    for a run folder.
    """
    check_training(experiment, device_of(device))
    return lambda folder: TrainingStepper(experiment, folder, device)


class TrainingStepper:
    """A trainer, its checkpoints and its metrics."""

    def __init__(self, experiment: Experiment, folder: RunFolder, device: str) -> None:
        self.folder, training = folder, experiment.training
        self.planned = set(training.checkpoint_steps())
        self.validated = training.validation_steps()
        self.device = device_of(device)
        self.precision = precision_of(training, self.device)
        self.trainer = Trainer(experiment, self.device, self.precision)
        unpack(self.trainer, folder)
        self.metrics = MetricsBuffer(experiment, folder, self.step)
        self.fetch_after = FETCH_AFTER[self.device.type]
        self.fetched_step, self.fetched_at = self.step, time.monotonic()
        self.next_fetch = self.step + 1
        if not checkpoint_steps(folder):
            self._validate()

    @property
    def step(self) -> int:
        """The number of completed steps."""
        return self.trainer.step

    def advance(self) -> StepLosses | None:
        """Train one step. Returns the latest losses if they were fetched."""
        self.metrics.add("train", self.step + 1, self.trainer.advance())
        if self.step in self.validated:
            self._validate()
        if self.step < self.next_fetch and self.step not in self.planned:
            return None
        self.metrics.fetch()
        # Steps are queued long before the GPU runs them, so the pace is measured between fetches.
        now = time.monotonic()
        pace = (self.step - self.fetched_step) / max(now - self.fetched_at, 1e-9)
        self.fetched_step, self.fetched_at = self.step, now
        self.next_fetch = self.step + max(1, int(pace * self.fetch_after))
        return self.metrics.latest

    def files(self) -> Mapping[str, bytes]:
        """The files of a commit: a checkpoint, and the metrics since the last commit."""
        self.metrics.fetch()
        if not self.trainer.weights.master.isfinite().all():
            what = f"a weight is not a number after step {self.step}"
            raise diverged(self.folder, what, CALMER)
        return {**self.metrics.take(self.step), **pack(self.trainer)}

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """All metrics as one file, and the names of its parts."""
        return merged_tables(self.folder)

    def _validate(self) -> None:
        self.metrics.add("validation", self.step, self.trainer.validate())


class MetricsBuffer:
    """Collects losses from the device for the store, and raises Diverged for bad losses."""

    def __init__(self, experiment: Experiment, folder: RunFolder, first_step: int) -> None:
        self.experiment, self.folder, self.start = experiment, folder, first_step
        self.limit = DIVERGED_AT * max(1.0, experiment.task.chance())
        self.on_device: dict[str, list[tuple[int, Tensor]]] = {"train": [], "validation": []}
        self.parts: list[dict[str, np.ndarray]] = []
        self.latest: StepLosses = {}

    def add(self, split: str, step: int, losses: Tensor) -> None:
        """Add the losses of a step, which may still be computed on the device."""
        self.on_device[split].append((step, losses))

    def fetch(self) -> None:
        """Fetch the losses from the device; raise Diverged if one is out of bounds."""
        for split, entries in self.on_device.items():
            if not entries:
                continue
            steps = np.array([step for step, _ in entries], np.int32)
            losses = torch.stack([tensor for _, tensor in entries]).float().cpu().numpy()
            self._check(steps, losses)
            self.parts.append(loss_rows(split, self.experiment, steps, losses))
            self.latest[split] = losses[-1]
            entries.clear()

    def take(self, step: int) -> dict[str, bytes]:
        """A file with the losses fetched since the last call; empty if there are none."""
        if not self.parts:
            return {}
        file = {METRICS.part_name(self.start, step): losses_file(self.parts)}
        self.parts, self.start = [], step
        return file

    def _check(self, steps: np.ndarray, losses: np.ndarray) -> None:
        bad = ~(losses < self.limit)  # also true for NaN
        if not bad.any():
            return
        row, member, hop = (int(axis[0]) for axis in np.nonzero(bad))
        value = losses[row, member, hop]
        size = "not a number" if math.isnan(value) else f"{value:.3g}"
        which, seed = self.experiment.asked_hops()[hop], self.experiment.seeds[member]
        what = f"the loss of hop {which} is {size} at step {steps[row]} (seed {seed})"
        raise diverged(self.folder, what, CALMER)


def pack(trainer: Trainer) -> dict[str, bytes]:
    """The trainer's state as the files of a checkpoint."""
    return {
        checkpoint_name(trainer.step): to_safetensors(trainer.weights.named()),
        optimiser_name(trainer.step): to_safetensors(trainer.optimiser.state()),
    }


def unpack(trainer: Trainer, folder: RunFolder) -> None:
    """Restore the last checkpoint of the run, if there is one."""
    for step in checkpoint_steps(folder)[-1:]:
        before = folder.manifest.precision
        if before != trainer.precision:
            raise RunMismatch(
                f"{folder.name} was trained in {before[:20]}, but this machine computes in "
                f"{trainer.precision}: resume on the machine it came from, or train a run whose "
                f"training.precision is {before[:20]}"
            )
        weights, moments = weights_at(folder, step), read_tensors(folder, optimiser_name(step))
        _check_shapes(weights, trainer.weights.named(), f"{folder.name}/{checkpoint_name(step)}")
        _check_shapes(moments, trainer.optimiser.state(), f"{folder.name}/{optimiser_name(step)}")
        trainer.restore(weights, moments, step)


def _check_shapes(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor], source: str) -> None:
    for name, tensor in wanted.items():
        got = tuple(state[name].shape) if name in state else "missing"
        if got != tuple(tensor.shape):
            raise RunMismatch(f"{source}: {name} is {got}, expected {tuple(tensor.shape)}")
