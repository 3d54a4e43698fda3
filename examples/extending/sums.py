"""A kind of run that adds up random numbers.

Like every run, it can be stopped, resumed bit for bit, stored, verified, listed and queried in SQL.
"""

from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

import numpy as np
import torch

from hopscope.configs import Positive, Recipe
from hopscope.configs.kinds import KINDS, Kind
from hopscope.configs.recipe import Seeds
from hopscope.runs import train
from hopscope.runs.checkpoint import to_safetensors, weights_at
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps
from hopscope.store.metrics import loss_rows, losses_file
from hopscope.store.tables import METRICS, merged_tables


class Sums(Recipe):
    """The recipe: how many random numbers to add up."""

    kind: Literal["sums"] = "sums"
    numbers: Positive = 40
    seeds: Seeds = (0,)
    task_kind: ClassVar = "sums"  # type: ignore[assignment]

    @property
    def steps(self) -> int:
        return self.numbers

    def title(self) -> str:
        return "sums"


class Summing:
    """The stepper: a step adds a number, and the loss is the sum."""

    device, precision = torch.device("cpu"), "float64"
    planned = range(0, 1_000, 10)

    def __init__(self, recipe: Sums, folder: RunFolder) -> None:
        self.recipe, self.folder = recipe, folder
        self.sum, self.step = torch.zeros(1, dtype=torch.float64), 0
        for self.step in checkpoint_steps(folder)[-1:]:
            self.sum = weights_at(folder, self.step)["sum"]
        self.start, self.losses = self.step, [[[0.0]]] if not self.step else []

    def advance(self) -> dict[str, np.ndarray]:
        self.step += 1
        self.sum = self.sum + np.random.default_rng([self.recipe.seeds[0], self.step]).random()
        self.losses.append([[float(self.sum)]])
        return {"train": np.array(self.losses[-1], np.float32)}

    def files(self) -> Mapping[str, bytes]:
        steps = np.arange(self.step - len(self.losses) + 1, self.step + 1, dtype=np.int32)
        rows = loss_rows("train", self.recipe, steps, np.array(self.losses, np.float32))
        state = to_safetensors({"sum": self.sum})
        name, self.start, self.losses = METRICS.part_name(self.start, self.step), self.step, []
        return {checkpoint_name(self.step): state, name: losses_file([rows])}

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        return merged_tables(self.folder)


def prepare(recipe: Sums, device: str) -> Callable[[RunFolder], Summing]:  # noqa: ARG001  (nothing here runs on a device)
    """Return a function that makes the stepper; raise an error if this machine cannot run it."""
    return lambda folder: Summing(recipe, folder)


KIND = Kind(Sums, f"{__name__}:prepare", "hopscope.runs.view:PlainRun")
"""The recipe, the function that prepares a run, and the view of a run: losses and checkpoints."""


def main() -> None:
    KINDS["sums"] = KIND
    with TemporaryDirectory() as store:
        run = train(Sums(numbers=100), store)
        steps, losses = run.losses()
        print(f"{run.name}: after {steps[-1]} numbers {losses[-1, 0, 0]:.2f}")


if __name__ == "__main__":
    main()
