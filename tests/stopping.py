"""A small recipe and others with another training; runs that are begun, or stopped at a step, or
that have the losses one likes; and all bytes of a run but its manifest's.
"""

import signal
from typing import Any

import numpy as np
import pytest

from hopscope.configs import Experiment, Model, Recipe, Retrieval, Training
from hopscope.errors import Interrupted
from hopscope.runs import Stop, train
from hopscope.store import RunFolder, Store
from hopscope.store.metrics import loss_rows, losses_file
from hopscope.store.tables import METRICS

TINY = Experiment(
    task=Retrieval(hops=2, chains=2),
    model=Model(layers=2, heads=2, d_model=16),
    training=Training(
        steps=12, batch=8, examples=64, checkpoint_every=5, validate_every=4,
        validation_examples=16, precision="float32",
    ),
)  # fmt: skip
"""Trains in well under a second."""


def changed(recipe: Experiment, **training: Any) -> Experiment:
    """The recipe with another training."""
    return recipe.replace(training=recipe.training.replace(**training))


def begun(recipe: Recipe, store: Store) -> RunFolder:
    """A run that somebody stopped after its first step."""
    stop = Stop()
    stop.ask("enough")
    with pytest.raises(Interrupted):
        train(recipe, store, stop=stop)
    return RunFolder(store.root / recipe.run_name())


def with_losses(
    store: Store, recipe: Experiment, losses: np.ndarray, *, complete: bool = False
) -> RunFolder:
    """A run whose training has had these losses: step by step, of each model and hop."""
    folder, count = store.create(recipe), len(losses)
    rows = loss_rows("train", recipe, np.arange(1, count + 1, dtype=np.int32), losses)
    files = {METRICS.part_name(0, count): losses_file([rows])}
    folder.commit(files, step=count, complete=complete)
    return folder


class Stops:
    """A watcher that sends the process a signal after a step, and notes the steps that it sees."""

    def __init__(self, step: int, number: int = signal.SIGTERM) -> None:
        self.step, self.number, self.seen, self.stopped = step, number, list[int](), False

    def start(self, folder: RunFolder, step: int) -> None: ...

    def advance(self, step: int, latest: Any) -> None:
        self.seen.append(step)
        if step == self.step:
            signal.raise_signal(self.number)

    def stop(self) -> None:
        self.stopped = True


def content(folder: RunFolder) -> dict[str, bytes]:
    """All files but the manifest, which says how long the training took."""
    return {name: folder.read(name) for name in folder.manifest.files}
