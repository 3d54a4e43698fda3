"""Many ablations in one walk through the layers.

Ablations that agree up to a layer share one residual stream up to it, its attention and what its
heads may carry. Where they part, one of them (the *usual* one, which has every head's most common
change) is computed at all positions, and the others only at the positions whose rows differ from
it. The walk goes on with a few of them to the last layer before it turns to the next, so that what
is alive at a time is bounded by the budget of a call for each layer, whatever their number.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablation import Ablation, Change
from hopscope.circuits.budget import Cache
from hopscope.circuits.engine import Adapter, Brought, record
from hopscope.circuits.examples import Examples
from hopscope.circuits.pattern import AS_IN_MODEL, Pattern
from hopscope.circuits.prescriber import Prescriber, Spots
from hopscope.facts import Role

Changes = tuple[Change, ...]
"""For every head of a layer, its pattern, or what it carries instead."""
UNTOUCHED = Pattern(rest=AS_IN_MODEL)
"""The pattern of a head that no ablation changes: all its rows stay as they are."""
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
    needed: list[int]
    """The heads whose own attention some branch needs."""
    pattern: Sequence[Float[Tensor, "batch needed read seq"] | None]
    """For each group, the attention of these heads; None if no branch needs it."""
    values: Sequence[Float[Tensor, "batch head seq d_head"]]

    def own(self, group: int, head: int) -> Float[Tensor, "batch read seq"] | None:
        """A head's own attention, if some branch needs it."""
        pattern = self.pattern[group]
        if pattern is None or head not in self.needed:
            return None
        return pattern[:, self.needed.index(head)]


@dataclass(frozen=True)
class Branch:
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


def from_model(change: Change) -> bool:
    """True if the model's own attention must be known to carry out the change."""
    if not isinstance(change, Pattern):
        return False
    return AS_IN_MODEL in (change.rest, *(target for _, target in change.targets))


def parted(number: int, groups: list[Group], changes: list[list[Changes]]) -> list[Branch]:
    """Groups part where their ablations do."""
    branches = []
    for at, group in enumerate(groups):
        parted: dict[Changes, list[int]] = {}
        for member in group.members:
            parted.setdefault(changes[member][number], []).append(member)
        branches += [
            Branch(at, its, (group.prefix, its), members) for its, members in parted.items()
        ]
    return branches


def in_parts(items: list[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of this size; the last may be shorter."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def joined(parts: list[Tensor]) -> Tensor:
    """The parts as one tensor."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


FEW = 0.25
"""Positions whose rows differ are computed on their own up to this share of all."""


class Walk:
    """A model, its examples, and what is kept between one walk and the next."""

    def __init__(
        self, adapter: Adapter, examples: Examples, prescriber: Prescriber, read: int
    ) -> None:
        self.adapter, self.examples, self.read = adapter, examples, read
        self.prescriber = prescriber
        self._streams = Cache(budget.kept_bytes(adapter.device))
        self._ask: Callable[[], None] = lambda: None
        self._part, self._groups = 1, 1
        """How many examples a call takes, and how many groups."""

    def losses(
        self, ablations: Sequence[Ablation], ask: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, Float[Tensor, "batch hop"]]]:
        """The number of each ablation, and the loss of every example and hop under it."""
        self._ask = ask
        x = self.adapter.embed(self.examples.inputs)
        self._part = budget.at_once(x.device, self.adapter.heads, *x.shape[1:])
        self._groups = max(1, self._part // len(x))
        changes = [self._by_layer(ablation) for ablation in ablations]
        yield from self._onward(0, [Group(x, (), list(range(len(changes))))], changes)

    def _by_layer(self, ablation: Ablation) -> list[Changes]:
        """What every head of every layer does."""
        changed = dict(ablation.changes)
        layers, heads = range(self.adapter.layers), range(self.adapter.heads)
        return [tuple(changed.get((n, head), UNTOUCHED) for head in heads) for n in layers]

    def _onward(
        self, number: int, groups: list[Group], changes: list[list[Changes]]
    ) -> Iterator[tuple[int, Float[Tensor, "batch hop"]]]:
        """From a layer to the end, a few groups at a time."""
        if number == self.adapter.layers:
            for group in groups:
                losses = self.examples.losses_of(self.adapter.unembed(group.x))
                yield from ((member, losses) for member in group.members)
            return
        for some in in_parts(groups, self._groups):
            self._ask()
            for after in self._through(number, some, changes):
                yield from self._onward(number + 1, after, changes)

    def _through(
        self, number: int, groups: list[Group], changes: list[list[Changes]]
    ) -> Iterator[list[Group]]:
        """Groups through a layer, where they part; a few of what comes out at a time."""
        branches, known = [], []
        for branch in parted(number, groups, changes):
            kept = self._streams.get(branch.prefix)
            if kept is None:
                branches.append(branch)
            else:
                known.append(Group(kept, branch.prefix, branch.members))
        yield from in_parts(known, self._groups)
        if not branches:
            return
        layer = self._layer(number, groups, branches)
        usual = self._usual(layer, branches)
        for some in in_parts(branches, self._groups):
            after = self._after(layer, some, usual)
            if number < self.adapter.layers - 1:
                for group in after:
                    self._streams.put(group.prefix, group.x)
            yield after

    def _layer(self, number: int, groups: list[Group], branches: list[Branch]) -> Layer:
        """Values of all groups, and the attention of those heads that some branch needs."""
        last = number == self.adapter.layers - 1
        read = self.read if last else self.examples.length
        x = joined([group.x for group in groups])
        by_head = zip(*(branch.changes for branch in branches), strict=True)
        needed = [head for head, its in enumerate(by_head) if any(map(from_model, its))]
        values, weights = [], []
        for part in x.split(self._part):
            heads = self.adapter.project(number, part)
            values.append(heads.values)
            if needed:
                weights.append(heads.weights(read, needed))
        patterns: Sequence[Tensor | None] = [None] * len(groups)
        if needed:
            patterns = joined(weights).split(len(self.examples))
        return Layer(
            number, read, groups, needed, patterns, joined(values).split(len(self.examples))
        )

    def _usual(self, layer: Layer, branches: list[Branch]) -> dict[int, Usual]:
        """What is most common in each group, computed for all groups at once."""
        of_group: dict[int, list[Changes]] = {}
        for branch in branches:
            of_group.setdefault(branch.group, []).append(branch.changes)
        common = {
            group: tuple(Counter(head).most_common(1)[0][0] for head in zip(*several, strict=True))
            for group, several in of_group.items()
        }
        mixed = [self._mixed(layer, group, changes) for group, changes in common.items()]
        before = [layer.groups[group].x[:, -layer.read :] for group in common]
        after = self._written(layer, before, mixed)
        return {
            group: Usual(changes, its, x)
            for (group, changes), its, x in zip(common.items(), mixed, after, strict=True)
        }

    def _written(
        self, layer: Layer, before: list[Tensor], mixed: list[Tensor]
    ) -> Sequence[Float[Tensor, "batch position d_model"]]:
        x, brought = joined(before), joined(mixed)
        parts: Sequence[Tensor] = self._finish(layer.number, x, brought).split(len(before[0]))
        return parts

    def _finish(self, number: int, x: Tensor, brought: Brought) -> Tensor:
        """The stream after a layer, a few examples at a time."""
        parts = zip(x.split(self._part), brought.split(self._part), strict=True)
        return joined([self.adapter.finish(number, *part) for part in parts])

    def _mixed(
        self, layer: Layer, group: int, changes: Changes
    ) -> Float[Tensor, "batch head read d_head"]:
        """What all heads of a group carry under the changes."""
        values = layer.values[group]
        mixed = values.new_empty(*values.shape[:2], layer.read, values.shape[-1])
        for head, change in enumerate(changes):
            if isinstance(change, Pattern):
                own = layer.own(group, head)
                pattern = self.prescriber.of(layer.number).attention_of(change, own, layer.read)
                mixed[:, head] = pattern.to(values.dtype) @ values[:, head]
            else:
                usual = self._carried[layer.number][:, head, -layer.read :]
                mixed[:, head] = usual.mean(0) if change.instead == "mean" else usual.roll(1, 0)
        return mixed

    def _after(self, layer: Layer, branches: list[Branch], usual: dict[int, Usual]) -> list[Group]:
        """The streams after a layer: of the usual changes, of those that differ in a few rows, of
        all others.
        """
        found: dict[int, Tensor] = {}
        whole: list[int] = []
        few: dict[int, list[Role]] = {}
        for number, branch in enumerate(branches):
            base = usual[branch.group]
            if branch.changes == base.changes:
                found[number] = base.after
                continue
            roles = self._differing(layer, branch.changes, base.changes)
            if roles is None:
                whole.append(number)
            elif not roles:
                found[number] = base.after
            else:
                few[number] = roles
        if whole:
            mixed = [self._mixed(layer, branches[n].group, branches[n].changes) for n in whole]
            before = [layer.groups[branches[n].group].x[:, -layer.read :] for n in whole]
            found |= zip(whole, self._written(layer, before, mixed), strict=True)
        if few:
            found |= self._patched(layer, branches, usual, few)
        return [Group(found[n], branch.prefix, branch.members) for n, branch in enumerate(branches)]

    def _differing(self, layer: Layer, changes: Changes, usual: Changes) -> list[Role] | None:
        """The roles whose rows are not as usual; None if they have many, or it is not the rows."""
        roles: dict[Role, None] = {}
        for mine, its in zip(changes, usual, strict=True):
            if mine == its:
                continue
            if not (isinstance(mine, Pattern) and isinstance(its, Pattern)):
                return None
            known = self.examples.table
            here, there = dict(mine.targets), dict(its.targets)
            roles |= {
                role: None
                for role in known
                if here.get(role, mine.rest) != there.get(role, its.rest)
            }
        rows = {role: len(self.prescriber.spots(role, layer.read)) for role in roles}
        if sum(rows.values()) > FEW * layer.read * len(self.examples):
            return None
        return [role for role, count in rows.items() if count]

    def _patched(
        self,
        layer: Layer,
        branches: list[Branch],
        usual: dict[int, Usual],
        few: dict[int, list[Role]],
    ) -> dict[int, Tensor]:
        """The usual streams, with the rows of some roles computed anew."""
        spots = {
            number: Spots.of_all([self.prescriber.spots(role, layer.read) for role in roles])
            for number, roles in few.items()
        }
        before, mixed = [], []
        for number, its in spots.items():
            branch = branches[number]
            before.append(layer.groups[branch.group].x[its.example, its.row])
            mixed.append(self._mixed_at(layer, branch, usual[branch.group], (few[number], its)))
        size = self._part * self.examples.length
        parts = zip(torch.cat(before).split(size), torch.cat(mixed).split(size), strict=True)
        finish = partial(self.adapter.finish, layer.number)
        out = joined([finish(x[None], its.transpose(0, 1)[None])[0] for x, its in parts])
        found = {}
        for (number, its), part in zip(
            spots.items(), out.split([*map(len, spots.values())]), strict=True
        ):
            found[number] = usual[branches[number].group].after.clone()
            found[number][its.example, its.read] = part
        return found

    def _mixed_at(
        self, layer: Layer, branch: Branch, base: Usual, at: tuple[list[Role], Spots]
    ) -> Float[Tensor, "spot head d_head"]:
        """What all heads carry to the rows of some roles."""
        roles, spots = at
        values = layer.values[branch.group]
        mixed: Tensor = base.mixed[spots.example, :, spots.read]
        for head, (mine, its) in enumerate(zip(branch.changes, base.changes, strict=True)):
            if mine == its:
                continue
            assert isinstance(mine, Pattern)
            own = layer.own(branch.group, head)
            prescriber = self.prescriber.of(layer.number)
            pattern = prescriber.rows_of_roles(mine, roles, own, layer.read)
            # A matrix of the rows of each example: slots that nobody has stay empty.
            rows = values.new_zeros(len(self.examples), spots.width, values.shape[-2])
            rows[spots.example, spots.slot] = pattern.to(values.dtype)
            mixed[:, head] = (rows @ values[:, head])[spots.example, spots.slot]
        return mixed

    @cached_property
    def _carried(self) -> list[Brought]:
        """What the heads of each layer carry in the model as it is."""
        pass_ = record(self.adapter, self.examples.inputs)
        return [pass_.brought(layer) for layer in range(self.adapter.layers)]
