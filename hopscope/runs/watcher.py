"""Those who look on while a run is carried out."""

from typing import Protocol, runtime_checkable

import numpy as np

from hopscope.store import RunFolder


@runtime_checkable
class Watcher(Protocol):
    """Someone who looks on while a run is carried out."""

    def start(self, folder: RunFolder, step: int) -> None:
        """Called once, with the step from which it goes on."""

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
