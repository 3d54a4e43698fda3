"""Which model of which run a command looks at."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.cli.arguments import RunArguments
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.study import RunStudy


@dataclass(frozen=True)
class ModelArguments(RunArguments):
    """Which run, and which of its models."""

    seed: int | None = None
    """Of a fleet, the model with this seed; unset: the first."""
    step: int | None = None
    """The checkpoint after this step; unset: the last."""

    def study(self) -> "RunStudy":
        """The model that they name."""
        folder = Store(self.store).find(self.run)  # a name that is not there needs no torch
        from hopscope.study import RunStudy
        from hopscope.training import Run

        return RunStudy(Run(folder), self.seed, self.step)


@dataclass(frozen=True)
class FoundArguments(ModelArguments):
    """Which model, and where its circuit is."""

    circuit_file: Path | None = None
    """Take the circuit from this file (of `discover --out`, or `circuit.save`), and not the one
    that is kept with the run."""

    def study(self) -> "RunStudy":
        """The model with that circuit."""
        examined = super().study()
        examined.circuit_from = self.circuit_file
        return examined
