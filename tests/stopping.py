"""Recipes with another training, runs that are stopped at a step, and all bytes of a run but its
manifest's.
"""

import signal
from typing import Any

from hopscope.configs import Experiment
from hopscope.store import RunFolder


def changed(recipe: Experiment, **training: Any) -> Experiment:
    """The recipe with another training."""
    return recipe.replace(training=recipe.training.replace(**training))


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
