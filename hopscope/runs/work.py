"""What a kind of run has to know to be carried out; `hopscope.runs.life` knows the rest."""

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from hopscope.store import RunFolder

if TYPE_CHECKING:
    import torch

Losses = dict[str, np.ndarray]
"""For each split, the losses of every model and hop [model, hop]."""


@runtime_checkable
class Work(Protocol):
    """A run's state in this process, and how it goes on.

    It is made from the run's folder and stands where the last commit was.
    """

    @property
    def step(self) -> int:
        """How many steps are done (of whatever unit the recipe counts in)."""

    @property
    def device(self) -> "torch.device":
        """What the run computes on."""

    @property
    def precision(self) -> str:
        """The arithmetic that the run computes in, such as float32."""

    @property
    def planned(self) -> Container[int]:
        """The steps after which a commit is due. A checkpoint of any other step, which a run that
        was stopped there has made, is dropped by the commit that follows.
        """

    def advance(self) -> Losses | None:
        """Go on as far as nobody can stop it. Returns the latest losses if there are new ones."""

    def files(self) -> Mapping[str, bytes]:
        """The files of a commit: the present state, and what was recorded since the last one."""

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """At the end: the committed pieces as whole files, and the names of the pieces."""


Begin = Callable[[RunFolder], Work]
"""The work of a run's folder, from where it stands."""
