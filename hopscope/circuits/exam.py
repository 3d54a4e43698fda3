"""What a model is examined with: inputs, roles of their positions, and how answers are marked."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.circuits.budget import check_examples
from hopscope.configs import KHop, Task, VectorTask
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.tasks import Batch, Roles, answer_losses, dataset, guessing_level
from hopscope.tasks import roles as roles_of


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
    if not isinstance(questions, VectorTask | KHop):
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
        return _question_losses(task, outputs.to(batch.targets.device), batch)

    # Every position of k-hop induction asks; the roles tell the story of the last one.
    read = 1 if isinstance(task, KHop) else None
    return Exam(batch.inputs, batch.roles, roles_of(task), losses, guessing_level(task), read)


def _question_losses(task: Task, outputs: Tensor, batch: Batch) -> Float[Tensor, "*variant b hop"]:
    """Each example's loss over the questions that its roles describe."""
    if isinstance(task, KHop):
        last = Batch(batch.inputs, batch.targets[:, -1:], batch.roles)
        return answer_losses(task, outputs[..., -1:, :], last)[..., 0, :]
    return torch.mean(answer_losses(task, outputs, batch), dim=-2)
