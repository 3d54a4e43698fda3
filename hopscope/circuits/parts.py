"""Ablations of many or long examples, on a slice of the examples at a time.

One ablation holds the attention of a layer for all its examples. Where that is too much, the walk
through the layers is made for each slice, and the loss terms of all slices give the losses. Streams
are not cached between calls of `losses` then: they would not fit in the cache.
"""

from functools import cache, partial

from hopscope.circuits.ablation import Instead
from hopscope.circuits.engine import Adapter, Brought
from hopscope.circuits.examples import Examples
from hopscope.circuits.prescriber import prescriber_of
from hopscope.circuits.slices import SlicedLosses
from hopscope.circuits.walk import Walk, head_outputs


class Parts:
    """A model and the slices of its examples, with what a slice needs of all other examples."""

    def __init__(
        self, adapter: Adapter, examples: Examples, read: int, slices: list[slice]
    ) -> None:
        self.adapter, self.examples, self.read, self.slices = adapter, examples, read, slices
        self.sliced = SlicedLosses(adapter, examples)
        self.means = cache(self._means)

    def walk(self, some: slice) -> Walk:
        """A walk over some examples, which yields their loss terms."""
        part = self.examples.part(some)
        return Walk(
            self.adapter,
            part,
            prescriber_of(self.adapter, part),
            self.read,
            partial(self.sliced.terms, some),
            cache(partial(self._carried, some)),
        )

    def _carried(self, some: slice, instead: Instead) -> list[Brought]:
        """Outputs of heads that `Carried.of` turns into those that it would give for these examples
        if it were given the outputs for all: for "resample" the last is that before the first.
        """
        if instead == "mean":
            return self.means()
        numbers = [*range(some.start, some.stop - 1), some.start - 1]
        return head_outputs(self.adapter, self.examples.inputs[numbers])

    def _means(self) -> list[Brought]:
        """The mean outputs of the heads of each layer over all examples."""
        sums: list[Brought] = []
        for some in self.slices:
            outputs = head_outputs(self.adapter, self.examples.inputs[some])
            found = [layer.sum(0, keepdim=True) for layer in outputs]
            sums = [all_ + more for all_, more in zip(sums, found, strict=True)] if sums else found
        return [layer / len(self.examples) for layer in sums]
