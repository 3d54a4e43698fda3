"""What a model is examined with: inputs, roles of their positions, and how answers are marked."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.circuits.budget import check_examples
from hopscope.configs import FactTask, Task
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.tasks import Roles, dataset, question_losses


@dataclass(frozen=True)
class Exam:
    """Examples, with the role and chain of every position, and a loss for every hop."""

    inputs: Tensor
    """[batch, seq, …]: whatever the model takes."""
    roles: Roles
    table: tuple[Role, ...]
    """The roles that `roles.role` indexes."""
    losses: Callable[[Tensor], Float[Tensor, "*variant batch hop"]]
    """Outputs [*variant, batch, read, width] → the loss of each example and hop."""
    guess: float
    """The loss of an answer that ignores how the facts connect."""
    read: int | None = None
    """How many of the last positions the loss looks at; unset: all that the model answers at."""

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def length(self) -> int:
        return self.roles.role.shape[-1]

    def on(self, device: torch.device) -> "Exam":
        """The same examples on another device."""
        roles = Roles(self.roles.role.to(device), self.roles.chain.to(device))
        return replace(self, inputs=self.inputs.to(device), roles=roles)

    def number(self, role: Role) -> int:
        """Where a role stands in the table."""
        if role not in self.table:
            known = ", ".join(map(str, self.table))
            raise CircuitError(f"there is no role {str(role)!r} here; the roles are {known}")
        return self.table.index(role)

    def positions(self, role: Role) -> Int[Tensor, "batch seq"]:
        """1 where a position has the role, 0 elsewhere."""
        return (self.roles.role == self.number(role)).long()


Questions = Task | Callable[[int, int], Exam]
"""A task, or whatever makes an exam from a number of examples and a seed."""


def exam_of(questions: Questions, examples: int, seed: int = 0) -> Exam:
    """Fresh examples of a task (from the validation stream of a seed)."""
    if examples < 1:
        raise CircuitError(f"examples is {examples}; a model is examined with at least 1")
    if not isinstance(questions, FactTask):
        if not callable(questions):
            raise CircuitError(
                f"a model is examined on a task, or on a function of a number of examples and a "
                f"seed that makes an exam; got {type(questions).__name__}"
            )
        return questions(examples, seed)
    task = questions
    check_examples(task, examples)
    batch = dataset(task, seed, examples, "validation")

    def losses(outputs: Tensor) -> Tensor:
        return question_losses(task, outputs.to(batch.targets.device), batch)

    inputs, roles, table = batch.inputs, batch.roles, task.roles()
    return Exam(inputs, roles, table, losses, task.guess(), task.described())
