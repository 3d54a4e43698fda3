"""Examples of a task: inputs, targets, and the role of each position."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

T = TypeVar("T")


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

    def mapped(self, change: Callable[..., Tensor], *others: "Batch") -> "Batch":
        """The batch of what `change` makes of each tensor (and of the same tensor of others)."""
        return _mapped(change, self, *others)

    def stacked(self, models: int) -> "Batch":
        """The same examples with the rows split into a model axis and a batch axis."""

        def split(rows: Tensor) -> Tensor:
            parts: Tensor = rows.unflatten(0, (models, -1))
            return parts

        return self.mapped(split)

    def part(self, rows: slice) -> "Batch":
        """Some of the examples; of every model's, if they are a fleet's."""

        def cut(values: Tensor) -> Tensor:
            return values.narrow(self.roles.role.ndim - 2, rows.start, rows.stop - rows.start)

        return self.mapped(cut)


def partners(chains: int, device: torch.device | str = "cpu") -> Int[Tensor, "chain"]:
    """The chain with which each swaps a symbol in a minimal pair: 1, 0, 3, 2, …

    Both examples of a pair are as likely as any other, since symbols are drawn alike for all
    chains. The last of an odd number of chains keeps its own symbol.

    >>> partners(5).tolist()
    [1, 0, 3, 2, 4]
    """
    chain = torch.arange(chains, device=device)
    other = chain ^ 1
    return torch.where(other < chains, other, chain)


def _mapped(change: Callable[..., Tensor], first: T, *others: T) -> T:
    """The same for dataclasses of tensors, or of such dataclasses."""

    def of(name: str) -> Any:
        parts = [getattr(each, name) for each in (first, *others)]
        return change(*parts) if isinstance(parts[0], Tensor) else _mapped(change, *parts)

    return replace(first, **{field.name: of(field.name) for field in fields(first)})  # type: ignore[arg-type, type-var]
