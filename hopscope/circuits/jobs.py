"""What a walk through the layers carries from one to the next, and how its ablations part."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.ablation import Change
from hopscope.circuits.pattern import AS_IN_MODEL, Pattern

Changes = tuple[Change, ...]
"""For every head of a layer, what it does: its mechanism, or what it carries instead."""
UNTOUCHED = Pattern(rest=AS_IN_MODEL)
"""The mechanism of a head that no ablation changes: all its rows stay as they are."""
Item = TypeVar("Item")

Prefix = tuple[object, ...]
"""The changes in all layers so far, on which a residual stream depends."""


@dataclass(frozen=True)
class Group:
    """Ablations that share a residual stream."""

    x: Float[Tensor, "batch seq d_model"]
    prefix: Prefix
    members: list[int]


@dataclass(frozen=True)
class Layer:
    """What several groups have in one layer, before anything is changed."""

    number: int
    read: int
    groups: list[Group]
    asked: list[int]
    """The heads whose own attention some job asks for."""
    pattern: list[Float[Tensor, "batch asked read seq"] | None]
    """For each group, the attention of these heads; None if nobody asks."""
    values: list[Float[Tensor, "batch head seq d_head"]]

    def own(self, group: int, head: int) -> Float[Tensor, "batch read seq"] | None:
        """A head's own attention, if anybody asked for it."""
        pattern = self.pattern[group]
        if pattern is None or head not in self.asked:
            return None
        return pattern[:, self.asked.index(head)]


@dataclass(frozen=True)
class Job:
    """Changes of every head in one layer of a group, and the ablations that have them."""

    group: int
    changes: Changes
    prefix: Prefix
    members: list[int]


@dataclass(frozen=True)
class Usual:
    """A group's most common changes: what their heads carry, and the stream after the layer."""

    changes: Changes
    mixed: Float[Tensor, "batch head read d_head"]
    after: Float[Tensor, "batch read d_model"]


def most_common(changes: Sequence[Change]) -> Change:
    """The most common of these changes; the first of several that are as common."""
    counts = Counter(changes)
    return max(counts, key=counts.__getitem__)


def from_model(change: Change) -> bool:
    """True if the model's own attention must be known to carry out the change."""
    if not isinstance(change, Pattern):
        return False
    return AS_IN_MODEL in (change.rest, *(target for _, target in change.targets))


def parted(number: int, groups: list[Group], changes: list[list[Changes]]) -> list[Job]:
    """Groups part where their ablations do."""
    jobs = []
    for at, group in enumerate(groups):
        parted: dict[Changes, list[int]] = {}
        for member in group.members:
            parted.setdefault(changes[member][number], []).append(member)
        jobs += [Job(at, its, (group.prefix, its), members) for its, members in parted.items()]
    return jobs


def in_parts(items: list[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of this size; the last may be shorter."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
