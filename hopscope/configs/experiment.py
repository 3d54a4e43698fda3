"""A training over facts."""

from typing import ClassVar

from hopscope.configs.model import Model
from hopscope.configs.recipe import Recipe, Seeds
from hopscope.configs.tasks import Retrieval, Task, VectorTask, guessing_level
from hopscope.configs.training import Training


class Experiment(Recipe):
    """One training: a task, a model, how it is trained, and the seeds.

    Several seeds train as one fleet of models of one shape. Each member gets the data and
    the initial weights it would get alone.
    """

    kind: ClassVar = "facts"

    task: Task = Retrieval()
    model: Model = Model()
    training: Training = Training()
    seeds: Seeds = (0,)
    """One model per seed; the seed fixes initial weights, training set and order."""

    @property
    def task_kind(self) -> str:
        return self.task.kind

    @property
    def steps(self) -> int:
        return self.training.steps

    @property
    def guess(self) -> float:
        """The loss of the best answer that ignores how the facts connect."""
        return guessing_level(self.task)

    def hop_numbers(self, count: int) -> list[int]:
        """Which hop each column of losses is of; without curriculum it is the last one alone."""
        task = self.task
        if task.curriculum:
            return list(range(1, count + 1))
        last = len(task.graph().facts) if isinstance(task, VectorTask) else task.hops
        return [last] * count

    def losses_named(self, count: int) -> list[str]:
        return [f"hop {number}" for number in self.hop_numbers(count)]

    def shape(self) -> dict[str, int | None]:
        return {
            "hops": getattr(self.task, "hops", None),
            "layers": self.model.layers,
            "heads": self.model.heads,
            "d_model": self.model.d_model,
        }

    def title(self) -> str:
        hops = getattr(self.task, "hops", None)
        task = self.task.kind if hops is None else f"{self.task.kind}-d{hops}"
        return f"{task}-l{self.model.layers}h{self.model.heads}"
