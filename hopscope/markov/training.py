"""Train the n-gram experiment: stage after stage, as an ordinary run of the store.

Each seed is a model with chains of its own. Between two records the seeds go on one after the
other: the counts of one fit into the processor's cache, those of twenty do not.
"""

import time
from pathlib import Path

import numpy as np
import torch

from hopscope.configs import Config, Descent, MarkovExperiment
from hopscope.errors import ConfigError, Diverged
from hopscope.markov.counts import check_memory
from hopscope.markov.full import FullLearner
from hopscope.markov.learner import CountingLearner, Learner
from hopscope.markov.run import MarkovRun, numbers
from hopscope.store import RunFolder, Store, metrics, parameters
from hopscope.training.checkpoint import checkpoint_name, checkpoint_steps, own_weights, saved
from hopscope.training.loop import NobodyWatches, Watcher, finished, interrupted
from hopscope.training.signals import StopRequest

LISTEN_EVERY = 500
"""Epochs after which, at the latest, a signal is obeyed."""
CHECKPOINT_EVERY = 10_000
"""Epochs between the checkpoints within a stage."""


def train(
    experiment: MarkovExperiment,
    store: Store | Path | str | None = None,
    watcher: Watcher | None = None,
    threads: int | None = None,
) -> MarkovRun:
    """Train the experiment, or finish it; if it is trained already, return that run.

    It computes with so many threads of the processor (None: as many as the run began with, or as
    torch would).
    """
    _check_kind(experiment)
    check_memory(experiment)

    def work(folder: RunFolder, request: StopRequest) -> None:
        _Training(experiment, folder, watcher or NobodyWatches()).run(request)

    return MarkovRun(finished(experiment, store, work, threads))


def _check_kind(experiment: object) -> None:
    if isinstance(experiment, MarkovExperiment):
        return
    got = type(experiment).__name__ if isinstance(experiment, Config) else repr(experiment)
    raise ConfigError(
        f"hopscope.markov.train got {got}; expected a MarkovExperiment (an Experiment is trained "
        "by hopscope.train)"
    )


def learner(experiment: MarkovExperiment, seed: int) -> Learner:
    """An untrained model with its chains."""
    kind = FullLearner if experiment.model.first == "full" else CountingLearner
    return kind(experiment, seed)


def record_epochs(descent: Descent) -> list[int]:
    """After which epochs losses and parameters are recorded: half of them evenly spaced in their
    stage, half of them closer and closer to its beginning.
    """
    found, begun = {0}, 0
    for _, epochs in descent.plan():
        half = descent.records // 2
        even = np.linspace(0, epochs, half + 1).round()
        early = np.geomspace(1, epochs, half).round()
        found |= {begun + int(epoch) for epoch in (*even, *early)}
        begun += epochs
    return sorted(found)


def checkpoint_epochs(descent: Descent) -> list[int]:
    """After which epochs a checkpoint is due: at the start, at each stage's end, and within it."""
    found, begun = {0}, 0
    for _, epochs in descent.plan():
        found |= {
            begun + epoch for epoch in (*range(CHECKPOINT_EVERY, epochs, CHECKPOINT_EVERY), epochs)
        }
        begun += epochs
    return sorted(found)


class _Training:
    """One process's share of a run."""

    def __init__(self, experiment: MarkovExperiment, folder: RunFolder, watcher: Watcher) -> None:
        self.experiment, self.folder, self.watcher = experiment, folder, watcher
        self.learners = {seed: learner(experiment, seed) for seed in experiment.seeds}
        self.epoch = self.start = 0
        self.due = set(checkpoint_epochs(experiment.descent))
        self.records = set(record_epochs(experiment.descent))
        self.events = self.due | self.records | set(range(0, experiment.steps, LISTEN_EVERY))
        self.losses: list[tuple[int, dict[str, np.ndarray]]] = []
        self.numbers: dict[int, list[dict[str, float]]] = {seed: [] for seed in experiment.seeds}
        self.clock = time.monotonic()
        self._restore()

    def run(self, request: StopRequest) -> None:
        self.watcher.start(self.folder, self.epoch)
        try:
            # What is not a number is found by `_record`.
            with np.errstate(all="ignore"):
                self._train(request)
        finally:
            self.watcher.stop()

    def _train(self, request: StopRequest) -> None:
        if not checkpoint_steps(self.folder):
            self._begin(self.experiment.descent.plan()[0][0])
            self._record()
            self._commit()
        for letters, end in self._stages():
            self._begin(letters)
            while self.epoch < end:
                self._advance(self._next_event(), request)
        self._complete()

    def _stages(self) -> list[tuple[str, int]]:
        """What the stages train, and after which epoch each ends."""
        plan = self.experiment.descent.plan()
        ends = np.cumsum([epochs for _, epochs in plan])
        return [(letters, int(end)) for (letters, _), end in zip(plan, ends, strict=True)]

    def _begin(self, letters: str) -> None:
        for learning in self.learners.values():
            learning.begin(letters)

    def _next_event(self) -> int:
        return min(epoch for epoch in self.events if epoch > self.epoch)

    def _advance(self, until: int, request: StopRequest) -> None:
        for learning in self.learners.values():
            for epoch in range(self.epoch, until):
                learning.advance(epoch)
        self.epoch = until
        stopping = request.signal is not None and until < self.experiment.steps
        if until in self.records | self.due or stopping:
            self._record()
        if until in self.due or stopping:
            self._commit()
        if stopping:
            raise interrupted(self.folder, until, request)

    def _record(self) -> None:
        losses = [learning.losses() for learning in self.learners.values()]
        for seed, each in zip(self.experiment.seeds, losses, strict=True):
            if not all(np.isfinite(loss) for loss in each.values()):
                raise Diverged(
                    f"the loss of seed {seed} is not a number after epoch {self.epoch}; the last "
                    f"good checkpoint is {self._last_good()}: lower descent.lr"
                )
        table = {
            split: np.array([[each[split]] for each in losses], np.float32)
            for split in ("train", "validation")
        }
        for seed, learning in self.learners.items():
            state = learning.state()
            if not all(np.isfinite(value).all() for value in state.values()):
                raise Diverged(
                    f"a parameter of seed {seed} is not a number after epoch {self.epoch}; the "
                    f"last good checkpoint is {self._last_good()}: lower descent.lr"
                )
            if self.epoch in self.records:
                self.numbers[seed].append(numbers(self.experiment.model, state))
        if self.epoch in self.records:
            self.losses.append((self.epoch, table))
        self.watcher.advance(self.epoch, table)

    def _commit(self) -> None:
        """Checkpoint, and what was recorded since the last."""
        states = [learning.state() for learning in self.learners.values()]
        weights = {
            name: torch.from_numpy(np.stack([state[name] for state in states]))
            for name in states[0]
        }
        about = (self.experiment.digest(), self.epoch, "float64")
        unplanned = [step for step in checkpoint_steps(self.folder) if step not in self.due]
        now = time.monotonic()
        self.folder.commit(
            {checkpoint_name(self.epoch): saved(weights, *about), **self._recorded()},
            drop=tuple(map(checkpoint_name, unplanned)),
            step=self.epoch,
            precision="float64",
            seconds=round(self.folder.manifest.seconds + now - self.clock, 3),
        )
        self.clock, self.start = now, self.epoch
        self.losses.clear()
        for series in self.numbers.values():
            series.clear()

    def _recorded(self) -> dict[str, bytes]:
        """The files of what was recorded since the last commit."""
        if not self.losses:
            return {}
        steps = np.array([epoch for epoch, _ in self.losses], np.int32)
        parts = [
            metrics.part(
                split,
                self.experiment.seeds,
                steps,
                np.stack([table[split] for _, table in self.losses]),
            )
            for split in ("train", "validation")
        ]
        values = {
            seed: {name: np.array([each[name] for each in series]) for name in series[0]}
            for seed, series in self.numbers.items()
        }
        return {
            metrics.part_name(self.start, self.epoch): metrics.to_parquet(parts),
            parameters.part_name(self.start, self.epoch): parameters.to_parquet(steps, values),
        }

    def _complete(self) -> None:
        """All parts as one file each."""
        parts = (*self.folder.files(metrics.PART), *self.folder.files(parameters.PART))
        files = {
            metrics.LOSSES: metrics.merged(self.folder),
            parameters.VALUES: parameters.merged(self.folder),
        }
        self.folder.commit(files, drop=parts, complete=True)

    def _restore(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        for step in checkpoint_steps(self.folder)[-1:]:
            weights = own_weights(self.folder, step)
            for number, learning in enumerate(self.learners.values()):
                learning.restore({name: value[number].numpy() for name, value in weights.items()})
            self.epoch = self.start = step

    def _last_good(self) -> str:
        steps = checkpoint_steps(self.folder)
        return f"{self.folder.path}/{checkpoint_name(steps[-1])}" if steps else "none"
