"""Which model of which run a command looks at."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopscope.cli.arguments import RunArguments
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.study import Study


@dataclass(frozen=True)
class ModelArguments(RunArguments):
    """Which run, and which of its models."""

    seed: int | None = None
    """Of a fleet, the model with this seed; unset: the first."""
    step: int | None = None
    """The checkpoint after this step; unset: the last."""

    def study(self) -> "Study":
        """The model that they name."""
        folder = Store(self.store).find(self.run)  # a name that is not there needs no torch
        from hopscope.study import Study
        from hopscope.training import Run

        return Study(Run(folder), self.seed, self.step)
