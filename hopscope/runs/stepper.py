"""The two protocols of a run: a stepper computes it, a watcher receives its losses.

`hopscope.runs.runner` does everything else.
"""

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from hopscope.store import RunFolder

if TYPE_CHECKING:
    import torch

StepLosses = dict[str, np.ndarray]
"""For each split, the losses of every model and hop [model, hop]."""


@runtime_checkable
class Stepper(Protocol):
    """The state of a run in this process; computes its next steps.

    It is made from the run's folder and begins at the last commit.
    """

    @property
    def step(self) -> int:
        """The number of completed steps, in the unit of the recipe."""

    @property
    def device(self) -> "torch.device":
        """The device that the run computes on."""

    @property
    def precision(self) -> str:
        """The arithmetic that the run computes in, such as float32."""

    @property
    def planned(self) -> Container[int]:
        """The steps after which a commit is due.

        A run that is stopped elsewhere also writes a checkpoint; the next commit removes that one.
        """

    def advance(self) -> StepLosses | None:
        """Compute up to the next step at which the run can be stopped.

        Returns the latest losses, or None if there are no new ones.
        """

    def files(self) -> Mapping[str, bytes]:
        """Return the files of a commit: the current state, and the records since the last one."""

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """Return the committed parts merged into whole files, and the parts' names. Called last."""


MakeStepper = Callable[[RunFolder], Stepper]
"""A function that makes the stepper of a run's folder, at its last commit."""


@runtime_checkable
class Watcher(Protocol):
    """Receives the losses of a run while it is computed."""

    def start(self, folder: RunFolder, step: int) -> None:
        """Called once, with the step from which the run continues."""

    def advance(self, step: int, latest: StepLosses) -> None:
        """Called with new losses."""

    def stop(self) -> None:
        """Called at the end, also after an error."""
