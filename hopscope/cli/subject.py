"""Which model of which run a command looks at."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.study import Study


@dataclass(frozen=True)
class ModelArguments:
    """Which run, and which of its models."""

    run: Annotated[str, tyro.conf.Positional]
    """The run's name, or enough of it to be unique; or gallery/NAME."""
    seed: int | None = None
    """Of a fleet, the model with this seed; unset: the first."""
    step: int | None = None
    """The checkpoint after this step; unset: the last."""
    store: Path | None = None
    """Folder of runs; unset: $HOPSCOPE_STORE, or ./runs."""

    def study(self) -> "Study":
        """The model that they name."""
        folder = Store(self.store).find(self.run)  # a name that is not there needs no torch
        from hopscope.study import Study
        from hopscope.training import Run

        return Study(Run(folder), self.seed, self.step)
