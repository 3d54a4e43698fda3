"""The training of an experiment over facts, as the work of a run."""

import time
from collections.abc import Mapping

import torch

from hopscope.configs import Experiment
from hopscope.errors import Diverged
from hopscope.runs.work import Begin, Losses
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps, last_good
from hopscope.store.tables import METRICS
from hopscope.training.learner import Learner
from hopscope.training.ledger import Ledger
from hopscope.training.memory import check_training
from hopscope.training.precision import device_of, precision_of
from hopscope.training.state import pack, unpack

SETTLED_AFTER = {"cpu": 0.0, "cuda": 0.5}
"""Seconds after which losses are fetched from the device: to fetch them waits for it."""


def prepare(experiment: Experiment, device: str) -> Begin:
    """What begins the training, on a device that is there and has room for it."""
    check_training(experiment, device_of(device))
    return lambda folder: TrainingWork(experiment, folder, device)


class TrainingWork:
    """One process's share of a training."""

    def __init__(self, experiment: Experiment, folder: RunFolder, device: str) -> None:
        self.folder = folder
        training = experiment.training
        self.planned = set(training.checkpoint_steps())
        self.validated = training.validation_steps()
        where = device_of(device)
        self.learner = Learner(experiment, where, precision_of(training, where))
        unpack(self.learner, folder)
        self.ledger = Ledger(experiment, self.step)
        self.settled_after = SETTLED_AFTER[where.type]
        self.settled, self.settled_at = self.step, time.monotonic()
        self.due = self.step + 1
        if not checkpoint_steps(folder):
            self._validate()

    @property
    def step(self) -> int:
        """Steps trained so far."""
        return self.learner.step

    @property
    def device(self) -> torch.device:
        """What the model is trained on."""
        return self.learner.device

    @property
    def precision(self) -> str:
        """The arithmetic that the model is trained in."""
        return self.learner.precision

    def advance(self) -> Losses | None:
        """Train one step; return the latest losses at planned steps and now and then, else None."""
        self.ledger.note("train", self.step + 1, self.learner.advance())
        if self.step in self.validated:
            self._validate()
        if self.step < self.due and self.step not in self.planned:
            return None
        self.ledger.settle(last_good(self.folder))
        self._plan_next()
        return self.ledger.latest

    def _plan_next(self) -> None:
        """Choose when losses are due: a GPU is told of steps long before it takes them, so seconds
        count steps that it has taken, at the pace of the last ones.
        """
        now = time.monotonic()
        pace = (self.step - self.settled) / max(now - self.settled_at, 1e-9)
        self.settled, self.settled_at = self.step, now
        self.due = self.step + max(1, int(pace * self.settled_after))

    def files(self) -> Mapping[str, bytes]:
        """The files of a commit: a checkpoint, and the metrics since the last commit."""
        self.ledger.settle(last_good(self.folder))
        if not self.learner.weights.master.isfinite().all():
            raise Diverged(
                f"a weight is not a number after step {self.step}; the last good checkpoint is "
                f"{last_good(self.folder)}: lower training.lr, or add training.warmup"
            )
        return {**self.ledger.take(self.step), **pack(self.learner)}

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """All metrics as one file, and the names of the parts that it takes the place of."""
        return {METRICS.file: METRICS.merged(self.folder)}, tuple(self.folder.files(METRICS.parts))

    def _validate(self) -> None:
        self.ledger.note("validation", self.step, self.learner.validate())
