"""What a run is made from: an experiment, whose canonical JSON gives the run its name."""

import hashlib
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from hopscope.configs.config import Config, Whole
from hopscope.configs.model import Model
from hopscope.configs.tasks import Retrieval, Task
from hopscope.configs.training import Training


def _each_once(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds are {seeds}: each may appear once")
    return seeds


Seeds = Annotated[
    tuple[Annotated[Whole, Field(ge=0, lt=2**31)], ...],
    Field(min_length=1),
    AfterValidator(_each_once),
]


class Recipe(Config):
    """What a run can be made from. The name of the run is a hash of the recipe."""

    if TYPE_CHECKING:  # each recipe declares its fields in an order of its own
        seeds: tuple[int, ...]

    @property
    def kind(self) -> str:
        """What is learned, in a word."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """Length of the whole training, in units."""
        raise NotImplementedError

    @property
    def unit(self) -> str:
        """What a training is counted in."""
        return "step"

    def shape(self) -> dict[str, int | None]:
        """The numbers that tables of runs show."""
        raise NotImplementedError

    def title(self) -> str:
        """The readable part of the run's name."""
        raise NotImplementedError

    def digest(self) -> str:
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def run_name(self) -> str:
        """What the run folder is called: readable, and unique by the digest at its end."""
        return f"{self.title()}-{self.digest()[:10]}"


class Experiment(Recipe):
    """One training: a task, a model, how it is trained, and the seeds.

    Several seeds train as one fleet of models of one shape. Each member gets the data and
    the initial weights it would get alone.
    """

    task: Task = Retrieval()
    model: Model = Model()
    training: Training = Training()
    seeds: Seeds = (0,)
    """One model per seed; the seed fixes initial weights, training set and order."""

    @property
    def kind(self) -> str:
        return self.task.kind

    @property
    def steps(self) -> int:
        return self.training.steps

    def shape(self) -> dict[str, int | None]:
        return {
            "hops": self.task.chosen_hops(),
            "layers": self.model.layers,
            "heads": self.model.heads,
            "d_model": self.model.d_model,
        }

    def title(self) -> str:
        hops = self.task.chosen_hops()
        task = self.task.kind if hops is None else f"{self.task.kind}-d{hops}"
        return f"{task}-l{self.model.layers}h{self.model.heads}"
