"""Ablations of many or long examples, on a slice of the examples at a time.

One ablation holds the attention of a layer for all its examples. Where that is too much, the walk
through the layers is made for each slice, and the loss terms of all slices give the losses.
"""

from functools import cached_property, lru_cache, partial

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
        # One slice at a time: the outputs of the heads of all layers are large.
        self.before = lru_cache(maxsize=1)(self._before)

    def walks(self) -> list[Walk]:
        """For each slice, a walk that yields the loss terms of its examples."""
        return [self._walk(some) for some in self.slices]

    def _walk(self, some: slice) -> Walk:
        part = self.examples.part(some)
        prescriber = prescriber_of(self.adapter, part, len(self.slices))
        terms, carried = partial(self.sliced.terms, some), partial(self._carried, some)
        return Walk(self.adapter, part, prescriber, self.read, terms, carried)

    def _carried(self, some: slice, instead: Instead) -> list[Brought]:
        """Outputs of heads that `Carried.of` turns into those that it would give for these examples
        if it were given the outputs for all.
        """
        return self.means if instead == "mean" else self.before(some.start, some.stop)

    def _before(self, start: int, stop: int) -> list[Brought]:
        """The outputs for these examples, except that the last is the one before the first."""
        return head_outputs(
            self.adapter, self.examples.inputs[[*range(start, stop - 1), start - 1]]
        )

    @cached_property
    def means(self) -> list[Brought]:
        """The mean outputs of the heads of each layer over all examples."""
        sums: list[Brought] = []
        for some in self.slices:
            outputs = head_outputs(self.adapter, self.examples.inputs[some])
            found = [layer.sum(0, keepdim=True) for layer in outputs]
            sums = [all_ + more for all_, more in zip(sums, found, strict=True)] if sums else found
        return [layer / len(self.examples) for layer in sums]
