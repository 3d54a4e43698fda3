"""The recipe of a training over facts: task, model, training and seeds."""

from typing import Literal

from hopscope.configs.model import Model
from hopscope.configs.recipe import Recipe, Seeds
from hopscope.configs.tasks import Retrieval, Task
from hopscope.configs.training import Training


class Experiment(Recipe):
    """The recipe of a training: a task, a model, training settings, and seeds.

    Several seeds train as one fleet of models of the same shape. Each member has the same data and
    initial weights as if it were trained alone.
    """

    kind: Literal["facts"] = "facts"

    task: Task = Retrieval()
    model: Model = Model()
    training: Training = Training()
    seeds: Seeds = (0,)
    """One model per seed; the seed determines initial weights, training set and order."""

    @property
    def task_kind(self) -> str:
        return self.task.kind

    @property
    def steps(self) -> int:
        return self.training.steps

    @property
    def chances(self) -> tuple[float, ...]:
        """The loss at chance of each hop: that of the best answer without a look-up."""
        return self.task.chances()

    def asked_hops(self) -> tuple[int, ...]:
        return self.task.asked_hops()

    def loss_names(self, count: int) -> list[str]:  # noqa: ARG002  (as many as hops are asked)
        return [f"hop {number}" for number in self.asked_hops()]

    def shape(self) -> dict[str, int | None]:
        return {
            "hops": self.task.chosen_hops(),
            "layers": self.model.layers,
            "heads": self.model.heads,
            "d_model": self.model.d_model,
        }

    def warnings(self) -> list[str]:
        return self.training.warnings()

    def title(self) -> str:
        hops = self.task.chosen_hops()
        task = self.task.kind if hops is None else f"{self.task.kind}-d{hops}"
        return f"{task}-l{self.model.layers}h{self.model.heads}"
