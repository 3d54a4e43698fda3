"""The two protocols of a run: the stepper computes it, the watcher sees its losses.

`hopscope.runs.runner` does all the rest.
"""

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from hopscope.store import RunFolder

if TYPE_CHECKING:
    import torch

Losses = dict[str, np.ndarray]
"""For each split, the losses of every model and hop [model, hop]."""


@runtime_checkable
class Stepper(Protocol):
    """The state of a run in this process, and its next steps.

    It is made from the run's folder and stands where the last commit was.
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
        """The steps after which a commit is due. The checkpoint of any other step, made when a run
        was stopped there, is dropped by the next commit.
        """

    def advance(self) -> Losses | None:
        """Compute until the run can next be stopped. Returns the latest losses if they are new."""

    def files(self) -> Mapping[str, bytes]:
        """The files of a commit: the present state, and the records since the last commit."""

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """The committed parts merged into whole files, and the names of the parts. Called last."""


MakeStepper = Callable[[RunFolder], Stepper]
"""Makes the stepper of a run's folder, at the last commit."""


@runtime_checkable
class Watcher(Protocol):
    """Sees the losses of a run while it is computed."""

    def start(self, folder: RunFolder, step: int) -> None:
        """Called once, with the step from which the run goes on."""

    def advance(self, step: int, latest: Losses) -> None:
        """Called with new losses."""

    def stop(self) -> None:
        """Called at the end, after an error too."""
