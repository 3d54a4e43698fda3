"""Train an experiment: a loop over steps, with commits from which it resumes to the bit.

The state after a step depends on the experiment and the step alone, so a training that was
killed goes on from its last commit and ends with the same weights and metrics.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from hopscope.configs import Config, Experiment, LlmBench, MarkovExperiment, Recipe
from hopscope.errors import ConfigError, Diverged, Interrupted, RunDamaged, RunWarning
from hopscope.machine import keep_pages
from hopscope.store import RunFolder, Store
from hopscope.store.metrics import LOSSES, PART, merged
from hopscope.tasks import guessing_level
from hopscope.training.checkpoint import OPTIMISERS, checkpoint_name, checkpoint_steps, pack, unpack
from hopscope.training.computing import (
    check_threads,
    note_computing,
    threads_of,
    using_threads,
)
from hopscope.training.learner import Learner
from hopscope.training.ledger import DIVERGED_AT, Ledger
from hopscope.training.memory import check_training
from hopscope.training.precision import device_of, precision_of
from hopscope.training.run import Run
from hopscope.training.signals import StopRequest, stop_on_signal

SETTLE_EVERY = {"cpu": 1, "cuda": 100}


@runtime_checkable
class Watcher(Protocol):
    """Someone who looks on while a run trains."""

    def start(self, folder: RunFolder, step: int) -> None:
        """Called once, with the step that training starts from."""

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        """Called as losses come in: split → [model, hop]."""

    def stop(self) -> None:
        """Called at the end, however it comes."""


class NobodyWatches:
    """A watcher that does nothing."""

    def start(self, folder: RunFolder, step: int) -> None:  # noqa: ARG002
        return None

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:  # noqa: ARG002
        return None

    def stop(self) -> None:
        return None


def train(
    experiment: Experiment,
    store: Store | Path | str | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
    threads: int | None = None,
) -> Run:
    """Train the experiment, or finish it; if it is trained already, return that run.

    It computes with so many threads of the processor (None: as many as the run began with, or as
    torch would); the same number gives the same bits.
    """
    _check_kind(experiment)
    store = store if isinstance(store, Store) else Store(store)
    # A device that is not there, or too small, is a mistake to hear of before there is a run.
    if device_of(device).type == "cpu" and not store.has_complete(experiment):
        check_training(experiment)

    def work(folder: RunFolder, request: StopRequest) -> None:
        _Training(experiment, folder, device, watcher or NobodyWatches()).run(request)

    return Run(finished(experiment, store, work, threads))


def _check_kind(experiment: object) -> None:
    """Refuse what is trained elsewhere, or not at all."""
    if isinstance(experiment, Experiment):
        return
    others = {
        MarkovExperiment: "hopscope.markov.train trains it",
        LlmBench: "hopscope.llm.bench.ask carries it out",
        Config: "an Experiment has a task, a model and a training",
    }
    hints = [hint for kind, hint in others.items() if isinstance(experiment, kind)]
    got = type(experiment).__name__ if hints else repr(experiment)
    raise ConfigError(
        f"train got {got}; expected an Experiment" + "".join(f": {h}" for h in hints[:1])
    )


def finished(
    recipe: Recipe,
    store: Store | Path | str | None,
    work: Callable[[RunFolder, StopRequest], None],
    threads: int | None = None,
) -> RunFolder:
    """The complete run of a recipe: the one there is, or what the work makes of what there is."""
    store = store if isinstance(store, Store) else Store(store)
    check_threads(threads)  # before there is a run
    folder = store.create(recipe)
    if not folder.manifest.complete or folder.strays().leftovers:
        with folder.locked(), stop_on_signal() as request:
            folder.sweep_leftovers()
            if not folder.manifest.complete:
                with using_threads(threads_of(folder, threads)):
                    _look_over(folder)
                    work(folder, request)
    return folder


def _look_over(folder: RunFolder) -> None:
    """Say what should be known before a run goes on: damage, and other ways of computing.

    Earlier checkpoints are not needed to go on; without any other file the run could not be
    completed, which is better heard now than at its end.
    """
    earlier = {checkpoint_name(step) for step in checkpoint_steps(folder)[:-1]}
    lines = []
    for name, line in folder.damage().items():
        if name not in earlier:
            raise RunDamaged(line)
        lines.append(line)
    for line in filter(None, (*lines, note_computing(folder))):
        warnings.warn(line, RunWarning, stacklevel=4)


class _Training:
    """One process's share of a run."""

    def __init__(
        self, experiment: Experiment, folder: RunFolder, device: str, watcher: Watcher
    ) -> None:
        keep_pages()
        self.folder, self.watcher = folder, watcher
        self.training = experiment.training
        self.due = set(self.training.checkpoint_steps())
        self.validated = self.training.validation_steps()
        where = device_of(device)
        self.learner = Learner(experiment, where, precision_of(self.training, where))
        unpack(self.learner, folder)
        limit = DIVERGED_AT * max(1.0, guessing_level(experiment.task))
        self.ledger = Ledger(experiment.seeds, self.learner.step, limit)
        self.settle_every = SETTLE_EVERY[where.type]
        self.clock = time.monotonic()

    def run(self, request: StopRequest) -> None:
        self.watcher.start(self.folder, self.learner.step)
        try:
            if not checkpoint_steps(self.folder):
                self._validate()
                self._commit()
            while self.learner.step < self.training.steps:
                self._advance()
                stopping = request.signal is not None  # asked once: it may arrive between lines
                if self.learner.step in self.due or stopping:
                    self._commit()
                if stopping and self.learner.step < self.training.steps:
                    raise interrupted(self.folder, self.learner.step, request)
            self._complete()
        finally:
            self.watcher.stop()

    def _advance(self) -> None:
        losses = self.learner.advance()
        step = self.learner.step
        self.ledger.note("train", step, losses)
        if step in self.validated:
            self._validate()
        if step % self.settle_every == 0:
            self.ledger.settle(self._last_good())
            self.watcher.advance(step, self.ledger.latest)

    def _validate(self) -> None:
        self.ledger.note("validation", self.learner.step, self.learner.validate())

    def _commit(self) -> None:
        """Checkpoint and metrics so far."""
        step = self.learner.step
        self.ledger.settle(self._last_good())
        if not self.learner.weights.master.isfinite().all():
            raise Diverged(
                f"a weight is not a number after step {step}; the last good checkpoint is "
                f"{self._last_good()}: lower training.lr, or add training.warmup"
            )
        self.folder.commit(
            {**self.ledger.take(step), **pack(self.learner)},
            drop=self._outdated(),
            step=step,
            precision=self.learner.precision,
            seconds=round(self.folder.manifest.seconds + self._lap(), 3),
        )

    def _complete(self) -> None:
        """All metrics as one file. A training killed just before comes back to this alone."""
        parts = tuple(self.folder.files(PART))
        self.folder.commit({LOSSES: merged(self.folder)}, drop=parts, complete=True)

    def _outdated(self) -> tuple[str, ...]:
        """The last optimiser, and checkpoints that an interruption left between planned ones."""
        unplanned = [step for step in checkpoint_steps(self.folder) if step not in self.due]
        return (*self.folder.files(OPTIMISERS), *map(checkpoint_name, unplanned))

    def _last_good(self) -> str:
        steps = checkpoint_steps(self.folder)
        return f"{self.folder.path}/{checkpoint_name(steps[-1])}" if steps else "none"

    def _lap(self) -> float:
        now = time.monotonic()
        self.clock, before = now, self.clock
        return now - before


def interrupted(folder: RunFolder, step: int, request: StopRequest) -> Interrupted:
    """What a training raises that was asked to stop."""
    name = request.signal.name if request.signal else "a signal"
    error = Interrupted(
        f"stopped by {name} at step {step}, where it wrote a checkpoint: "
        f"`hopscope resume {folder.name}`"
    )
    error.exit_code = 128 + (request.signal or 2)
    return error
