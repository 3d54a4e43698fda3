"""Ablations as data: for some heads, what they do instead.

They follow a pattern (their attention is prescribed), or carry the mean of what they usually carry
(mean ablation), or what they carry in another example (resample ablation). An ablator measures
many ablations at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, get_args

from hopscope.circuits.pattern import Head, Pattern
from hopscope.errors import CircuitError

Instead = Literal["mean", "resample"]


@dataclass(frozen=True, order=True)
class Carried:
    """Instead of what a head carries: its mean over the examples, or another example's."""

    instead: Instead

    def __post_init__(self) -> None:
        known = get_args(Instead)
        if self.instead not in known:
            raise CircuitError(
                f"a head is to carry {self.instead!r}; expected {' or '.join(known)}"
            )


Change = Pattern | Carried

Changes = tuple[tuple[int, Change], ...]
"""The changes in one layer: for each changed head its number, and what it does instead."""


@dataclass(frozen=True)
class Ablation:
    """Some heads of a model, and what each does instead; all others are left alone."""

    changes: tuple[tuple[Head, Change], ...] = ()

    @classmethod
    def of(cls, changes: Mapping[Head, Change]) -> "Ablation":
        """The ablation that makes these changes; equal changes give equal ablations."""
        for head, change in changes.items():
            if not _is_head(head) or not isinstance(change, Pattern | Carried):
                raise CircuitError(
                    f"{head!r} is to do {change!r}; expected (layer, head) with a Pattern or "
                    "Carried, as in {(1, 0): Pattern()}"
                )
        return cls(tuple(sorted(changes.items(), key=lambda item: item[0])))

    def at(self, layer: int) -> Changes:
        """The changes in this layer, each as (head, change)."""
        return tuple((head, change) for (at, head), change in self.changes if at == layer)


def _is_head(given: object) -> bool:
    pair = given if isinstance(given, tuple) else ()
    return len(pair) == 2 and all(isinstance(number, Integral) for number in pair)
