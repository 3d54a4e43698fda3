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
    """The role and chain of each position of each example.

    `role` is an index into the task's table of roles (`task.roles()`); `chain` is the number of the
    interleaved chain that the position belongs to.
    """

    role: Int[Tensor, "*batch seq"]
    chain: Int[Tensor, "*batch seq"]


@dataclass(frozen=True)
class Batch:
    """Examples of one task; a fleet's batch has a model axis in front.

    Targets have one entry per answered position and hop: a symbol's vector, or for token tasks a
    class number.
    """

    inputs: Float[Tensor, "*batch seq width"] | Int[Tensor, "*batch seq"]
    targets: Float[Tensor, "*batch answer hop dim"] | Int[Tensor, "*batch answer hop"]
    roles: Roles

    def __len__(self) -> int:
        return len(self.inputs)

    def mapped(self, change: Callable[..., Tensor], *others: "Batch") -> "Batch":
        """A batch with `change` applied to each tensor (and the same tensor of `others`)."""
        return _mapped(change, self, *others)

    def stacked(self, models: int) -> "Batch":
        """The same examples with the rows split into a model axis and a batch axis."""

        def split(rows: Tensor) -> Tensor:
            parts: Tensor = rows.unflatten(0, (models, -1))
            return parts

        return self.mapped(split)

    def part(self, rows: slice) -> "Batch":
        """Some of the examples (for a fleet, the same rows of every model)."""

        def cut(values: Tensor) -> Tensor:
            return values.narrow(self.roles.role.ndim - 2, rows.start, rows.stop - rows.start)

        return self.mapped(cut)


def partners(chains: int, device: torch.device | str = "cpu") -> Int[Tensor, "chain"]:
    """For each chain, the chain with which it swaps a symbol in a minimal pair: 1, 0, 3, 2, …

    Both examples of a pair have the same probability, since all chains draw symbols from the same
    distribution. With an odd number of chains, the last keeps its own symbol.

    >>> partners(5).tolist()
    [1, 0, 3, 2, 4]
    """
    chain = torch.arange(chains, device=device)
    other = chain ^ 1
    return torch.where(other < chains, other, chain)


def _mapped(change: Callable[..., Tensor], first: T, *others: T) -> T:
    """`Batch.mapped` for any dataclass of tensors or of such dataclasses."""

    def of(name: str) -> Any:
        parts = [getattr(each, name) for each in (first, *others)]
        return change(*parts) if isinstance(parts[0], Tensor) else _mapped(change, *parts)

    return replace(first, **{field.name: of(field.name) for field in fields(first)})  # type: ignore[arg-type, type-var]
