"""What every task hands out: inputs, targets, and the role of each position."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Roles:
    """What each position of each example stands for.

    `role` indexes the task's table of roles (`task.roles()`); `chain` tells which
    of the interleaved chains the position belongs to.
    """

    role: Int[Tensor, "*batch seq"]
    chain: Int[Tensor, "*batch seq"]


@dataclass(frozen=True)
class Batch:
    """Examples of one task; a fleet's batch has a model axis in front.

    Targets have one entry per answered position and hop: a symbol's vector, or for token tasks
    the number of a class.
    """

    inputs: Float[Tensor, "*batch seq width"] | Int[Tensor, "*batch seq"]
    targets: Float[Tensor, "*batch answer hop dim"] | Int[Tensor, "*batch answer hop"]
    roles: Roles

    def __len__(self) -> int:
        return len(self.inputs)

    def stacked(self, models: int) -> "Batch":
        """The same examples with the rows split into a model axis and a batch axis."""

        def split(rows: Tensor) -> Tensor:
            parts: Tensor = rows.unflatten(0, (models, -1))
            return parts

        roles = Roles(split(self.roles.role), split(self.roles.chain))
        return Batch(split(self.inputs), split(self.targets), roles)

    def part(self, rows: slice) -> "Batch":
        """Some of the examples; of every model's, if they are a fleet's."""

        def cut(values: Tensor) -> Tensor:
            return values.narrow(self.roles.role.ndim - 2, rows.start, rows.stop - rows.start)

        roles = Roles(cut(self.roles.role), cut(self.roles.chain))
        return Batch(cut(self.inputs), cut(self.targets), roles)
