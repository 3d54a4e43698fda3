"""The training of the n-gram experiment, stage after stage, as the work of a run.

Each seed is a model with chains of its own. Between two records the seeds go on one after the
other: the counts of one fit into the processor's cache, those of twenty do not.
"""

from collections.abc import Mapping

import numpy as np
import torch

from hopscope.configs import Descent, NgramExperiment
from hopscope.errors import ConfigError, Diverged
from hopscope.ngram.counts import check_memory
from hopscope.ngram.full import FullLearner
from hopscope.ngram.learner import CountingLearner, Learner
from hopscope.ngram.run import numbers
from hopscope.runs.checkpoint import to_safetensors, weights_at
from hopscope.runs.work import Begin, Losses
from hopscope.store import RunFolder, metrics, parameters
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, last_good

LISTEN_EVERY = 500
"""Epochs after which, at the latest, a signal is obeyed."""
CHECKPOINT_EVERY = 10_000
"""Epochs between the checkpoints within a stage."""


def prepare(experiment: NgramExperiment, device: str) -> Begin:
    """What begins the training, on a machine that has room for it."""
    if device not in ("auto", "cpu"):
        raise ConfigError(
            f"device is {device!r}; the n-gram experiment computes on the processor: cpu, or auto"
        )
    check_memory(experiment)
    return lambda folder: NgramWork(experiment, folder)


def learner(experiment: NgramExperiment, seed: int) -> Learner:
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


class NgramWork:
    """One process's share of a training."""

    device = torch.device("cpu")
    precision = "float64"

    def __init__(self, experiment: NgramExperiment, folder: RunFolder) -> None:
        self.experiment, self.folder = experiment, folder
        self.learners = {seed: learner(experiment, seed) for seed in experiment.seeds}
        self.planned = set(checkpoint_epochs(experiment.descent))
        self.records = set(record_epochs(experiment.descent))
        self.events = self.planned | self.records | set(range(0, experiment.steps, LISTEN_EVERY))
        self.losses: list[tuple[int, Losses]] = []
        self.numbers: dict[int, list[dict[str, float]]] = {seed: [] for seed in experiment.seeds}
        self.stage: int | None = None
        self.step = self.start = self._restored()
        if not checkpoint_steps(folder):
            self._begin_stage()
            self._record()

    def advance(self) -> Losses | None:
        """Train up to the next epoch at which something is recorded or committed, or a signal is
        obeyed.
        """
        self._begin_stage()
        until = min(epoch for epoch in self.events if epoch > self.step)
        with np.errstate(all="ignore"):  # what is not a number is found when it is recorded
            for learning in self.learners.values():
                for epoch in range(self.step, until):
                    learning.advance(epoch)
            self.step = until
            return self._record() if until in self.records | self.planned else None

    def files(self) -> Mapping[str, bytes]:
        """Checkpoint, and what was recorded since the last."""
        states = self._states()
        weights = {
            name: torch.from_numpy(np.stack([state[name] for state in states.values()]))
            for name in next(iter(states.values()))
        }
        files = {checkpoint_name(self.step): to_safetensors(weights), **self._recorded()}
        self.start = self.step
        self.losses.clear()
        for series in self.numbers.values():
            series.clear()
        return files

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """All parts as one file each."""
        parts = (*self.folder.files(metrics.PART), *self.folder.files(parameters.PART))
        files = {
            metrics.LOSSES: metrics.merged(self.folder),
            parameters.VALUES: parameters.merged(self.folder),
        }
        return files, parts

    def _restored(self) -> int:
        """Go on from the last checkpoint, if there is one. Returns its epoch."""
        for step in checkpoint_steps(self.folder)[-1:]:
            weights = weights_at(self.folder, step)
            for number, learning in enumerate(self.learners.values()):
                learning.restore({name: value[number].numpy() for name, value in weights.items()})
            return step
        return 0

    def _begin_stage(self) -> None:
        """Tell every model what the stage of the next epoch trains, if that is another stage."""
        plan = self.experiment.descent.plan()
        ends = np.cumsum([epochs for _, epochs in plan])
        stage = int(np.searchsorted(ends, self.step, side="right"))
        if stage != self.stage:
            self.stage = stage
            for learning in self.learners.values():
                learning.begin(plan[stage][0])

    def _record(self) -> Losses:
        """The losses of all models; at an epoch of the record, they are kept."""
        losses = [learning.losses() for learning in self.learners.values()]
        for seed, each in zip(self.experiment.seeds, losses, strict=True):
            if not all(np.isfinite(loss) for loss in each.values()):
                raise self._diverged(f"the loss of seed {seed}")
        table = {
            split: np.array([[each[split]] for each in losses], np.float32)
            for split in ("train", "validation")
        }
        states = self._states()
        if self.step in self.records:
            self.losses.append((self.step, table))
            for seed, state in states.items():
                self.numbers[seed].append(numbers(self.experiment.model, state))
        return table

    def _states(self) -> dict[int, dict[str, np.ndarray]]:
        """Everything trained, of each seed."""
        states = {seed: learning.state() for seed, learning in self.learners.items()}
        for seed, state in states.items():
            if not all(np.isfinite(value).all() for value in state.values()):
                raise self._diverged(f"a parameter of seed {seed}")
        return states

    def _diverged(self, what: str) -> Diverged:
        return Diverged(
            f"{what} is not a number after epoch {self.step}; the last good checkpoint is "
            f"{last_good(self.folder)}: lower descent.lr"
        )

    def _recorded(self) -> dict[str, bytes]:
        """The files of what was recorded since the last commit."""
        if not self.losses:
            return {}
        steps = np.array([epoch for epoch, _ in self.losses], np.int32)
        parts = [
            metrics.part(
                split,
                self.experiment,
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
            metrics.part_name(self.start, self.step): metrics.to_parquet(parts),
            parameters.part_name(self.start, self.step): parameters.to_parquet(steps, values),
        }
