"""Runs to be shared, written as a training writes them, without one: no torch is needed for it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.store.gallery import find
from hopscope.store.metrics import loss_rows, losses_file
from hopscope.store.tables import METRICS, merged_tables

STEPS = 6
RECIPE = Experiment(
    task=KHop(hops=2, length=9, alphabet=5),
    model=Model(layers=2, heads=2, d_model=12),
    training=Training(steps=STEPS, batch=4, examples=16, checkpoint_every=3, validate_every=2),
    seeds=(3, 5),
)
Record = Callable[[RunFolder, int, int], None]


def train(folder: RunFolder, first: int, last: int) -> None:
    """Commit the losses of these steps: 1, 2, … in training, 0, 2, … in validation."""
    parts = []
    for number, split in enumerate(("train", "validation")):
        steps = [s for s in range(first, last + 1) if (s % 2 == 0 if number else s > 0)]
        shape = len(steps), 2, 2
        found = np.random.default_rng([first, number]).random(shape, np.float32)
        parts.append(loss_rows(split, RECIPE, np.array(steps, np.int32), found))
    weights = safetensors.numpy.save({"w": np.full(3, last, np.float32)})
    files = {METRICS.part_name(first, last): losses_file(parts), checkpoint_name(last): weights}
    folder.commit(files, step=last, seconds=0.5 * last)
    if last == STEPS:
        folder.commit(*merged_tables(folder), complete=True)


@pytest.fixture(scope="session")
def record() -> Record:
    return train


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A complete fleet of two."""
    folder = Store(tmp_path_factory.mktemp("sharing") / "runs").create(RECIPE)
    train(folder, 0, STEPS)
    return folder


@pytest.fixture(scope="session")
def demo() -> RunFolder:
    return find("demo")


@pytest.fixture
def empty(tmp_path: Path) -> RunFolder:
    """The same before its first step."""
    return Store(tmp_path / "runs").create(RECIPE)
