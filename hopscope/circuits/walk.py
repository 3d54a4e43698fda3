"""Many ablations in one walk through the layers.

Ablations that are equal up to a layer share the residual stream before it, and in the layer also
its attention and values. A few ablations are taken to the last layer before the next ones (depth
first), so that memory is bounded by the budget of a call for each layer, for any number of
ablations.

One ablation holds the attention of a layer for all its examples. Where that is too much, the walk
through the layers is made for each slice of the examples, and the loss terms of all slices give the
losses.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.engine import Adapter, Brought, Heads, as_model, forward
from hopscope.circuits.examples import Examples
from hopscope.circuits.pattern import AS_IN_MODEL, MEAN, UNTOUCHED, Pattern, Target
from hopscope.circuits.prescriber import prescriber_of
from hopscope.circuits.slices import SlicedLosses, ablation_slices
from hopscope.memory import Memory

Changes = tuple[Pattern, ...]
"""The pattern of every head of a layer."""
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


def from_model(pattern: Pattern) -> bool:
    """True if the pattern needs the model's own attention."""
    return AS_IN_MODEL in (pattern.rest, *(target for _, target in pattern.targets))


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


class Sliced:
    """A model and the slices of its examples, with what a slice needs of all other examples."""

    def __init__(self, adapter: Adapter, examples: Examples, read: int) -> None:
        self.adapter, self.examples, self.read = adapter, examples, read
        self.slices = ablation_slices(adapter, examples)
        self.terms = SlicedLosses(adapter, examples).terms
        # One slice at a time: the outputs of the heads of all layers are large.
        self._before: tuple[slice, list[Brought]] = slice(0), []

    def before(self, some: slice) -> list[Brought]:
        """The outputs of the heads of each layer in the example before each of these (before the
        first of all: the last).
        """
        if self._before[0] != some:
            others = self.examples.inputs[[*range(some.start - 1, some.stop - 1)]]
            self._before = some, head_outputs(self.adapter, others)
        return self._before[1]

    @cached_property
    def means(self) -> list[Brought]:
        """The mean outputs of the heads of each layer over all examples."""
        sums: list[Brought] = []
        for some in self.slices:
            outputs = head_outputs(self.adapter, self.examples.inputs[some])
            found = [layer.sum(0, keepdim=True) for layer in outputs]
            sums = [all_ + more for all_, more in zip(sums, found, strict=True)] if sums else found
        return [layer / len(self.examples) for layer in sums]


class Walk:
    """The walk of one slice of the examples, with the streams that are cached between calls."""

    def __init__(self, whole: Sliced, some: slice) -> None:
        self.whole, self.some, self.examples = whole, some, whole.examples.part(some)
        self.adapter, self.read = whole.adapter, whole.read
        self.prescriber = prescriber_of(whole.adapter, self.examples, len(whole.slices))
        self.part = 1
        """The number of examples in one call of a layer."""
        self._streams = Memory(budget.kept_bytes(whole.adapter.device) // len(whole.slices))

    def carried(self, instead: Target) -> list[Brought]:
        """What the heads of each layer bring in place of their own outputs."""
        return self.whole.means if instead == MEAN else self.whole.before(self.some)

    def terms(
        self, ablations: Sequence[Ablation], ask: Callable[[], None]
    ) -> Iterator[tuple[int, Tensor]]:
        """The number of each ablation, and the loss terms of the examples under it. `ask` is called
        before each layer.
        """
        x = self.adapter.embed(self.examples.inputs)
        self.part = budget.at_once(x.device, self.adapter.heads, *x.shape[1:])
        changes = [self._by_layer(ablation) for ablation in ablations]
        every = Bundle(x, (), list(range(len(changes))))
        for bundle in self._onward(0, [every], changes, ask):
            terms = self.whole.terms(self.some, bundle.x)
            yield from ((member, terms) for member in bundle.members)

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
            kept = self._streams.known(branch.prefix)
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
                    # A view would hold the streams of all branches; a stream alone needs no copy.
                    x = bundle.x.clone() if len(after) > 1 else bundle.x
                    self._streams.keep(bundle.prefix, x, x.nbytes)
            if not waiting:
                del layer  # or its attention would be held while the next layers are computed
            yield after

    def _few(self, items: list[Item]) -> Iterator[list[Item]]:
        """The items in groups that fit in one call of a layer."""
        size = max(1, self.part // len(self.examples))
        for start in range(0, len(items), size):
            yield items[start : start + size]


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

    def after(self, branches: list[Branch]) -> list[Bundle]:
        """The streams of these branches after the layer, computed a few examples at a time."""
        before = _joined([self.before[branch.bundle] for branch in branches])
        part, finish = self.walk.part, self.walk.adapter.finish
        parts = zip(before.split(part), self._mixed(branches).split(part), strict=True)
        after = _joined([finish(self.number, x, brought) for x, brought in parts])
        return [
            Bundle(x, branch.prefix, branch.members)
            for branch, x in zip(branches, after.split(len(self.examples)), strict=True)
        ]

    def _mixed(self, branches: list[Branch]) -> Float[Tensor, "row head read d_head"]:
        """The outputs of all heads in each branch, one branch after the other. Branches of a bundle
        share the outputs of heads with the same change.
        """
        values = self.values[0]
        mixed = values.new_empty(len(branches), *values.shape[:2], self.read, values.shape[-1])
        known: dict[tuple[int, int, Pattern], Tensor] = {}
        for number, branch in enumerate(branches):
            for head, change in enumerate(branch.changes):
                which = branch.bundle, head, change
                if which not in known:
                    known[which] = self._brought(*which)
                mixed[number, :, head] = known[which]
        return mixed.flatten(0, 1)

    def _brought(
        self, bundle: int, head: int, pattern: Pattern
    ) -> Float[Tensor, "#batch read d_head"]:
        """The output of one head of a bundle with a pattern; once if it is the same for all
        examples.
        """
        instead = {
            its: self.walk.carried(its)[self.number][:, head, -self.read :]
            for its in pattern.carried
        }
        if pattern.rest in instead and not pattern.targets:
            return instead[pattern.rest]
        values = self.values[bundle][:, head]
        weights = self.prescriber.attention_of(pattern, self.own[bundle].get(head), self.read)
        brought = weights.to(values.dtype) @ values
        for each, its in instead.items():
            rows = self.prescriber.carried(pattern, each, self.read)
            brought = torch.where(rows, its, brought)
        return brought
