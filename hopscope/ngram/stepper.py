"""`NgramStepper`: trains an n-gram experiment, stage by stage, with checkpoints and records.

Each seed has its own model and chains. Between two records, the seeds are trained one after the
other, since the counts of one seed fit into the processor's cache, but those of twenty do not.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from hopscope.configs import Descent, NgramExperiment
from hopscope.configs.recipe import SPLITS
from hopscope.errors import ConfigError
from hopscope.ngram.counts import check_memory
from hopscope.ngram.parameters import numbers
from hopscope.ngram.trainer import NgramTrainer
from hopscope.runs.checkpoint import to_safetensors, weights_at
from hopscope.runs.stepper import MakeStepper, StepLosses
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, diverged
from hopscope.store.metrics import loss_rows, losses_file, parameters_file
from hopscope.store.tables import METRICS, PARAMETERS, merged_tables

LISTEN_EVERY = 500
"""The most epochs between two checks for a signal."""
CHECKPOINT_EVERY = 10_000
"""The number of epochs between checkpoints within a stage."""


def prepare(experiment: NgramExperiment, device: str) -> MakeStepper:
    """Check device and memory; returns a function that makes the stepper for a run folder."""
    if device not in ("auto", "cpu"):
        raise ConfigError(
            f"device is {device!r}; the n-gram experiment computes on the processor: cpu, or auto"
        )
    check_memory(experiment)
    return lambda folder: NgramStepper(experiment, folder)


def record_epochs(descent: Descent) -> list[int]:
    """The epochs at which losses and parameters are recorded.

    In each stage, half of them are evenly spaced, and half logarithmically, denser at its start.
    """
    epochs = {0}
    for begin, length in _stages(descent):
        half = min(descent.records // 2, length)  # as many as epochs are all of them
        moments = [*np.linspace(0, length, half + 1), *np.geomspace(1, length, half)]
        epochs |= {begin + round(moment) for moment in moments}
    return sorted(epochs)


def checkpoint_epochs(descent: Descent) -> list[int]:
    """The epochs with a checkpoint: the start, the end of each stage, and some within stages."""
    epochs = {0}
    for begin, length in _stages(descent):
        epochs |= {begin + epoch for epoch in range(CHECKPOINT_EVERY, length, CHECKPOINT_EVERY)}
        epochs.add(begin + length)
    return sorted(epochs)


def _stages(descent: Descent) -> Iterator[tuple[int, int]]:
    """The first epoch and the number of epochs of each stage."""
    begin = 0
    for _, length in descent.plan():
        yield begin, length
        begin += length


class NgramStepper:
    """Trains all models of an n-gram experiment."""

    device = torch.device("cpu")
    precision = "float64"

    def __init__(self, experiment: NgramExperiment, folder: RunFolder) -> None:
        self.experiment, self.folder = experiment, folder
        self.trainers = {seed: NgramTrainer(experiment, seed) for seed in experiment.seeds}
        self.planned = set(checkpoint_epochs(experiment.descent))
        self.records = set(record_epochs(experiment.descent))
        self.events = self.planned | self.records | set(range(0, experiment.steps, LISTEN_EVERY))
        self.recorded: list[tuple[int, StepLosses, dict[int, dict[str, float]]]] = []
        self.stage: int | None = None
        self.step = self.start = self._restored()
        if not checkpoint_steps(folder):
            self._begin_stage()
            self._record()

    def advance(self) -> StepLosses | None:
        """Train up to the next record, checkpoint, or check for a signal. Returns the losses at a
        record or checkpoint.
        """
        self._begin_stage()
        until = min(epoch for epoch in self.events if epoch > self.step)
        with np.errstate(all="ignore"):  # NaN is checked when losses are recorded
            for trainer in self.trainers.values():
                for epoch in range(self.step, until):
                    trainer.advance(epoch)
            self.step = until
            return self._record() if until in self.records | self.planned else None

    def files(self) -> Mapping[str, bytes]:
        """The files of a commit: a checkpoint, and the records since the last commit."""
        states = list(self._states().values())
        weights = {
            name: torch.from_numpy(np.stack([state[name] for state in states]))
            for name in states[0]
        }
        files = {checkpoint_name(self.step): to_safetensors(weights), **self._new_parts()}
        self.start = self.step
        self.recorded.clear()
        return files

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """All parts of each table as one file, and the names of the parts."""
        return merged_tables(self.folder)

    def _restored(self) -> int:
        """Restore the last checkpoint, if there is one. Returns its epoch."""
        for step in checkpoint_steps(self.folder)[-1:]:
            weights = weights_at(self.folder, step)
            for number, trainer in enumerate(self.trainers.values()):
                state = {name: value[number].numpy() for name, value in weights.items()}
                trainer.model.restore(state)
            return step
        return 0

    def _begin_stage(self) -> None:
        """Start the stage of the next epoch in every model, unless it has started already."""
        plan = self.experiment.descent.plan()
        ends = np.cumsum([epochs for _, epochs in plan])
        stage = int(np.searchsorted(ends, self.step, side="right"))
        if stage != self.stage:
            self.stage = stage
            for trainer in self.trainers.values():
                trainer.model.begin(plan[stage][0])

    def _record(self) -> StepLosses:
        """The losses of all models; at a record epoch, they are saved with the parameters."""
        each = {seed: trainer.losses() for seed, trainer in self.trainers.items()}
        self._check(each, "the loss")
        table: StepLosses = {
            split: np.array([[losses[split]] for losses in each.values()], np.float32)
            for split in SPLITS
        }
        states = self._states()
        if self.step in self.records:
            model = self.experiment.model
            values = {seed: numbers(model, state) for seed, state in states.items()}
            self.recorded.append((self.step, table, values))
        return table

    def _states(self) -> dict[int, dict[str, np.ndarray]]:
        """The state of each model, by seed."""
        states = {seed: trainer.model.state() for seed, trainer in self.trainers.items()}
        self._check(states, "a parameter")
        return states

    def _check(self, values: Mapping[int, Mapping[Any, float | np.ndarray]], what: str) -> None:
        """Raise Diverged if a value of any seed is not finite."""
        for seed, own in values.items():
            if not all(np.isfinite(value).all() for value in own.values()):
                after = f"{what} of seed {seed} is not a number after epoch {self.step}"
                raise diverged(self.folder, after, "lower descent.lr")

    def _new_parts(self) -> dict[str, bytes]:
        """The files of the records since the last commit."""
        if not self.recorded:
            return {}
        epochs, tables, values = zip(*self.recorded, strict=True)
        steps = np.array(epochs, np.int32)
        parts = [
            loss_rows(split, self.experiment, steps, np.stack([each[split] for each in tables]))
            for split in SPLITS
        ]
        series = {
            seed: {name: np.array([each[seed][name] for each in values]) for name in names}
            for seed, names in values[0].items()
        }
        return {
            METRICS.part_name(self.start, self.step): losses_file(parts),
            PARAMETERS.part_name(self.start, self.step): parameters_file(steps, series),
        }
