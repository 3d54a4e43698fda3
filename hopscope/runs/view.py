"""A run of any kind; classes for each kind extend it."""

from dataclasses import dataclass

import numpy as np

from hopscope.configs import Recipe
from hopscope.display import Displayed
from hopscope.shapes import Float32, Int32
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.store.metrics import losses
from hopscope.store.query import SqlQuery, metrics_of


@dataclass(frozen=True)
class PlainRun(Displayed):
    """A run of any kind on disk: its recipe, checkpoints and losses."""

    folder: RunFolder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the run in its store."""
        return self.folder.name

    @property
    def recipe(self) -> Recipe:
        """The recipe of the run."""
        return self.folder.recipe

    @property
    def checkpoints(self) -> list[int]:
        """The steps that have a checkpoint."""
        return checkpoint_steps(self.folder)

    def losses(
        self, split: str = "train"
    ) -> tuple[Int32[np.ndarray, "step"], Float32[np.ndarray, "step model hop"]]:
        """Return the steps and the losses at each, one model per seed; the last axis is the hop."""
        return losses(self.folder, split)

    def metrics(self) -> SqlQuery:
        """Return a query of all losses, with the columns split, step, seed, hop and loss."""
        return metrics_of(self.folder)
