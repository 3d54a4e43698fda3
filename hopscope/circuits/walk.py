"""Many ablations in one walk through the layers.

Ablations that are equal up to a layer share the residual stream before it, and in the layer also
its attention and values. Where they differ, one of them (the *usual* one, with every head's most
common change) is computed at all positions, and the others only at positions whose rows differ from
it. A few ablations are taken to the last layer before the next ones (depth first), so that memory
is bounded by the budget of a call for each layer, for any number of ablations.
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
from hopscope.circuits.ablation import Ablation, Change, Instead
from hopscope.circuits.budget import Cache
from hopscope.circuits.engine import Adapter, Brought, Heads, as_model, forward
from hopscope.circuits.examples import Examples
from hopscope.circuits.pattern import AS_IN_MODEL, Pattern
from hopscope.circuits.prescriber import Prescriber, Spots
from hopscope.circuits.slices import SlicedLosses
from hopscope.facts import Role

Changes = tuple[Change, ...]
"""The change of every head of a layer."""
UNTOUCHED = Pattern(rest=AS_IN_MODEL)
"""The pattern of an unchanged head."""
Item = TypeVar("Item")

Prefix = tuple[object, ...]
"""The changes in all earlier layers, which determine a residual stream."""


@dataclass(frozen=True)
class Bundle:
    """Ablations that share a residual stream."""

    x: Float[Tensor, "batch seq d_model"]
    prefix: Prefix
    members: list[int]


@dataclass(frozen=True)
class Branch:
    """The ablations of a bundle with the same changes in one layer."""

    bundle: int
    changes: Changes
    prefix: Prefix
    members: list[int]


@dataclass(frozen=True)
class Usual:
    """A bundle's most common changes, the outputs of its heads, and the stream after the layer."""

    changes: Changes
    mixed: Float[Tensor, "batch head read d_head"]
    after: Float[Tensor, "batch read d_model"]


def from_model(change: Change) -> bool:
    """True if the change needs the model's own attention."""
    if not isinstance(change, Pattern):
        return False
    return AS_IN_MODEL in (change.rest, *(target for _, target in change.targets))


def parted(number: int, bundles: list[Bundle], changes: list[list[Changes]]) -> list[Branch]:
    """The branches of bundles in a layer: ablations with the same changes stay together."""
    branches = []
    for at, bundle in enumerate(bundles):
        parted: dict[Changes, list[int]] = {}
        for member in bundle.members:
            parted.setdefault(changes[member][number], []).append(member)
        branches += [
            Branch(at, its, (bundle.prefix, its), members) for its, members in parted.items()
        ]
    return branches


def _joined(parts: list[Tensor]) -> Tensor:
    """The concatenated parts (a single part is not copied)."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def head_outputs(adapter: Adapter, inputs: Tensor) -> list[Brought]:
    """The outputs of the heads of each layer in the unchanged model."""
    found: list[Brought] = []

    def attend(layer: int, heads: Heads) -> Brought:
        found.append(as_model(layer, heads))
        return found[-1]

    forward(adapter, adapter.embed(inputs), attend)
    return found


FEW = 0.25
"""Differing positions are computed separately if they are at most this share of all positions."""


class Walk:
    """A model, its examples, and the streams that are cached between calls of `losses`.

    For a part of the examples of an `Ablator`, `measure` gives the loss terms of the streams after
    the last layer, and `carried` the outputs of the heads of each layer for a `Carried` change.
    """

    def __init__(
        self,
        adapter: Adapter,
        examples: Examples,
        prescriber: Prescriber,
        read: int,
        measure: Callable[[Tensor], Tensor] | None = None,
        carried: Callable[[Instead], list[Brought]] | None = None,
    ) -> None:
        self.adapter, self.examples, self.read = adapter, examples, read
        self.carried = carried or (lambda _: self._outputs)
        self.prescriber = prescriber
        self.measure = measure or SlicedLosses(adapter, examples).losses
        self.part = 1
        """The number of examples in one call of a layer."""
        self._streams = Cache(budget.kept_bytes(adapter.device) // prescriber.parts)

    def losses(
        self, ablations: Sequence[Ablation], ask: Callable[[], None]
    ) -> Iterator[tuple[int, Float[Tensor, "batch hop"]]]:
        """The number of each ablation, and the loss of every example and hop under it. `ask` is
        called before each layer.
        """
        x = self.adapter.embed(self.examples.inputs)
        self.part = budget.at_once(x.device, self.adapter.heads, *x.shape[1:])
        changes = [self._by_layer(ablation) for ablation in ablations]
        every = Bundle(x, (), list(range(len(changes))))
        for bundle in self._onward(0, [every], changes, ask):
            losses = self.measure(bundle.x)
            yield from ((member, losses) for member in bundle.members)

    def _by_layer(self, ablation: Ablation) -> list[Changes]:
        """The change of every head, layer by layer."""
        changed = dict(ablation.changes)
        layers, heads = range(self.adapter.layers), range(self.adapter.heads)
        return [tuple(changed.get((n, head), UNTOUCHED) for head in heads) for n in layers]

    def _onward(
        self,
        number: int,
        bundles: list[Bundle],
        changes: list[list[Changes]],
        ask: Callable[[], None],
    ) -> Iterator[Bundle]:
        """The bundles after the last layer, from those before layer `number`, a few at a time."""
        if number == self.adapter.layers:
            yield from bundles
            return
        for some in self._few(bundles):
            ask()
            for after in self._through(number, some, changes):
                yield from self._onward(number + 1, after, changes, ask)

    def _through(
        self, number: int, bundles: list[Bundle], changes: list[list[Changes]]
    ) -> Iterator[list[Bundle]]:
        """The bundles after a layer, a few at a time. Cached streams are not computed again."""
        branches, known = [], []
        for branch in parted(number, bundles, changes):
            kept = self._streams.get(branch.prefix)
            if kept is None:
                branches.append(branch)
            else:
                known.append(Bundle(kept, branch.prefix, branch.members))
        yield from self._few(known)
        if not branches:
            return
        layer, waiting = Layer(self, number, bundles, branches), [*self._few(branches)]
        while waiting:
            after = layer.after(waiting.pop(0))
            if not layer.last:
                for bundle in after:
                    self._streams.put(bundle.prefix, bundle.x)
            if not waiting:
                del layer  # or its attention would be held while the next layers are computed
            yield after

    def _few(self, items: list[Item]) -> Iterator[list[Item]]:
        """The items in groups that fit in one call of a layer."""
        size = max(1, self.part // len(self.examples))
        for start in range(0, len(items), size):
            yield items[start : start + size]

    @cached_property
    def _outputs(self) -> list[Brought]:
        return head_outputs(self.adapter, self.examples.inputs)


class Layer:
    """One layer for several bundles: values and attention before any change, and the streams after
    it.
    """

    def __init__(
        self, walk: Walk, number: int, bundles: list[Bundle], branches: list[Branch]
    ) -> None:
        self.walk, self.number, self.examples = walk, number, walk.examples
        self.prescriber = walk.prescriber.of(number)
        self.last = number == walk.adapter.layers - 1
        self.read = walk.read if self.last else walk.examples.length
        self.before = [bundle.x[:, -self.read :] for bundle in bundles]
        by_head = zip(*(branch.changes for branch in branches), strict=True)
        needed = [head for head, its in enumerate(by_head) if any(map(from_model, its))]
        values, weights = [], []
        for part in _joined([bundle.x for bundle in bundles]).split(walk.part):
            heads = walk.adapter.project(number, part)
            values.append(heads.values)
            if needed:
                weights.append(heads.weights(self.read, needed))
        self.values: Sequence[Brought] = _joined(values).split(len(self.examples))
        self.own: list[dict[int, Tensor]] = [{} for _ in bundles]
        """For each bundle, the model's own attention of heads for which some branch needs it."""
        if needed:
            parts = _joined(weights).split(len(self.examples))
            self.own = [dict(zip(needed, its.unbind(1), strict=True)) for its in parts]
        self.usual = self._usual(branches)

    def _usual(self, branches: list[Branch]) -> dict[int, Usual]:
        """The most common changes of each bundle, computed for all bundles at once."""
        of_bundle: dict[int, list[Changes]] = {}
        for branch in branches:
            of_bundle.setdefault(branch.bundle, []).append(branch.changes)
        common = {
            bundle: tuple(Counter(head).most_common(1)[0][0] for head in zip(*several, strict=True))
            for bundle, several in of_bundle.items()
        }
        mixed = [self._mixed(bundle, changes) for bundle, changes in common.items()]
        after = self._finished([self.before[bundle] for bundle in common], mixed)
        return {
            bundle: Usual(changes, its, x)
            for (bundle, changes), its, x in zip(common.items(), mixed, after, strict=True)
        }

    def _mixed(self, bundle: int, changes: Changes) -> Float[Tensor, "batch head read d_head"]:
        """The outputs of all heads of a bundle with the changes."""
        values = self.values[bundle]
        mixed = values.new_empty(*values.shape[:2], self.read, values.shape[-1])
        for head, change in enumerate(changes):
            if isinstance(change, Pattern):
                own = self.own[bundle].get(head)
                pattern = self.prescriber.attention_of(change, own, self.read)
                mixed[:, head] = pattern.to(values.dtype) @ values[:, head]
            else:
                usual = self.walk.carried(change.instead)[self.number]
                mixed[:, head] = change.of(usual[:, head, -self.read :])
        return mixed

    def _finished(
        self, before: list[Tensor], mixed: list[Tensor]
    ) -> Sequence[Float[Tensor, "batch read d_model"]]:
        """Streams after the layer, a few examples at a time."""
        x, brought, finish = _joined(before), _joined(mixed), self.walk.adapter.finish
        parts = zip(x.split(self.walk.part), brought.split(self.walk.part), strict=True)
        after = _joined([finish(self.number, *part) for part in parts])
        found: Sequence[Tensor] = after.split(len(self.examples))
        return found

    def after(self, branches: list[Branch]) -> list[Bundle]:
        """The streams after the layer. A branch with the usual changes is known; one that differs
        in a few rows is computed only there; all others are computed at every position.
        """
        found: dict[int, Tensor] = {}
        whole: list[int] = []
        few: dict[int, list[Role]] = {}
        for number, branch in enumerate(branches):
            roles = self._differing(branch)
            if roles is None:
                whole.append(number)
            elif roles:
                few[number] = roles
            else:
                found[number] = self.usual[branch.bundle].after
        if whole:
            mixed = [self._mixed(branches[n].bundle, branches[n].changes) for n in whole]
            before = [self.before[branches[n].bundle] for n in whole]
            found |= zip(whole, self._finished(before, mixed), strict=True)
        if few:
            found |= self._patched(branches, few)
        return [
            Bundle(found[n], branch.prefix, branch.members) for n, branch in enumerate(branches)
        ]

    def _differing(self, branch: Branch) -> list[Role] | None:
        """The roles whose rows differ from the usual changes; None if these are too many positions,
        or if a head's output is replaced, not its attention.
        """
        roles: dict[Role, None] = {}
        for mine, its in zip(branch.changes, self.usual[branch.bundle].changes, strict=True):
            if mine == its:
                continue
            if not (isinstance(mine, Pattern) and isinstance(its, Pattern)):
                return None
            here, there = dict(mine.targets), dict(its.targets)
            roles |= {
                role: None
                for role in self.examples.table
                if here.get(role, mine.rest) != there.get(role, its.rest)
            }
        rows = {role: len(self.prescriber.spots(role, self.read)) for role in roles}
        if sum(rows.values()) > FEW * self.read * len(self.examples):
            return None
        return [role for role, count in rows.items() if count]

    def _patched(self, branches: list[Branch], few: dict[int, list[Role]]) -> dict[int, Tensor]:
        """The usual streams, with the positions of some roles computed again."""
        spots = {
            number: Spots.of_all([self.prescriber.spots(role, self.read) for role in roles])
            for number, roles in few.items()
        }
        before = [
            self.before[branches[n].bundle][its.example, its.read] for n, its in spots.items()
        ]
        mixed = [self._mixed_at(branches[n], few[n], its) for n, its in spots.items()]
        size = self.walk.part * self.examples.length
        parts = zip(torch.cat(before).split(size), torch.cat(mixed).split(size), strict=True)
        finish = partial(self.walk.adapter.finish, self.number)
        out = _joined([finish(x[None], its.transpose(0, 1)[None])[0] for x, its in parts])
        found = {}
        for (number, its), part in zip(spots.items(), out.split([*map(len, before)]), strict=True):
            found[number] = self.usual[branches[number].bundle].after.clone()
            found[number][its.example, its.read] = part
        return found

    def _mixed_at(
        self, branch: Branch, roles: list[Role], spots: Spots
    ) -> Float[Tensor, "spot head d_head"]:
        """The outputs of all heads at the positions of some roles."""
        values, usual = self.values[branch.bundle], self.usual[branch.bundle]
        mixed: Tensor = usual.mixed[spots.example, :, spots.read]
        for head, (mine, its) in enumerate(zip(branch.changes, usual.changes, strict=True)):
            if mine == its:
                continue
            assert isinstance(mine, Pattern)
            own = self.own[branch.bundle].get(head)
            pattern = torch.cat([
                self.prescriber.rows_of(mine.of(role), role, own, self.read) for role in roles
            ])  # fmt: skip
            # The rows of each example as a matrix; unused slots stay zero.
            rows = values.new_zeros(len(self.examples), spots.width, values.shape[-2])
            rows[spots.example, spots.slot] = pattern.to(values.dtype)
            mixed[:, head] = (rows @ values[:, head])[spots.example, spots.slot]
        return mixed
