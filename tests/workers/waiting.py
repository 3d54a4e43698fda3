"""What tests of several processes share: to wait for something, and to compare whole runs."""

import time
from collections.abc import Callable

from hopscope.configs import Experiment
from hopscope.store import Store

PATIENCE = 240.0
"""Seconds for what takes a few, on a machine that does much else."""


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def files(store: Store, recipe: Experiment) -> dict[str, bytes]:
    folder = store.find(recipe.run_name())
    assert folder.verify() == []
    return {name: folder.read(name) for name in folder.manifest.files}
