"""Losses from the outputs of a few examples at a time.

An example has positions × classes outputs. With a language model's vocabulary, the outputs of all
examples would not fit into memory. Those of a small one are computed in one slice.
"""

from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.adapters.callback import as_it_is
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Examples, SplitLoss


@torch.no_grad()
def output_bytes(adapter: Adapter | CallbackModel, examples: Examples) -> int:
    """The bytes of the outputs of one example."""
    inputs, read = examples.inputs[:1].to(adapter.device), examples.read_of(adapter.answers_at())
    if isinstance(adapter, CallbackModel):
        return adapter.outputs(inputs, as_it_is).nbytes
    return adapter.unembed(adapter.embed(inputs)[:, -read:]).nbytes


def output_slices(
    adapter: Adapter | CallbackModel, examples: Examples, most: int | None = None
) -> list[slice]:
    """Slices of at most `most` examples, whose outputs fit into the bytes of one call; one slice of
    `most` examples if the loss needs the outputs of all.
    """
    size = min(most or len(examples), len(examples))
    if isinstance(examples.losses, SplitLoss):
        fit = budget.call_bytes(adapter.device) // output_bytes(adapter, examples)
        size = max(1, min(size, fit))
    return [slice(at, min(at + size, len(examples))) for at in range(0, len(examples), size)]


class Gathered:
    """A tensor of all examples that is computed slice by slice. It is allocated at the first slice:
    small tensors that stay between large ones would keep malloc from using their memory again.
    """

    def __init__(self, examples: int) -> None:
        self.examples, self.all = examples, torch.empty(0)

    def put(self, some: slice, part: Tensor) -> None:
        """Store the part of a slice."""
        if len(part) == self.examples:
            self.all = part
            return
        if not some.start:
            self.all = part.new_empty(self.examples, *part.shape[1:])
        self.all[some] = part


class SlicedLosses:
    """The losses of a model's answers, computed a few examples at a time."""

    def __init__(self, adapter: Adapter, examples: Examples) -> None:
        self.adapter, self.examples = adapter, examples

    @cached_property
    def slices(self) -> list[slice]:
        """The slices of examples whose outputs are computed together."""
        return output_slices(self.adapter, self.examples)

    def losses(self, x: Float[Tensor, "batch read d_model"]) -> Float[Tensor, "batch hop"]:
        """The loss of each example and hop, from the streams after the last layer."""
        terms = Gathered(len(x))
        for some in self.slices:
            terms.put(some, self.examples.terms_of(self.adapter.unembed(x[some]), some))
        return self.examples.losses_from(terms.all)
