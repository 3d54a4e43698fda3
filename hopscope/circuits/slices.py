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


@torch.no_grad()
def ablation_slices(adapter: Adapter, examples: Examples) -> list[slice]:
    """Slices of examples that are ablated together; one slice if the loss needs all outputs."""
    shape = adapter.heads, examples.length, adapter.embed(examples.inputs[:1]).shape[-1]
    size, outputs = len(examples), 0
    if isinstance(examples.losses, SplitLoss):
        size = min(size, budget.ablated_at_once(adapter.device, *shape))
    else:
        outputs = size * output_bytes(adapter, examples)
    if adapter.device.type == "cpu":
        needed = size * budget.layer_bytes(*shape) + outputs
        budget.check_ablation(size, examples.length, needed)
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
    def size(self) -> int:
        """How many examples have their outputs computed together."""
        together = output_slices(self.adapter, self.examples)[0]
        return len(range(together.start, together.stop))

    def losses(self, x: Float[Tensor, "batch read d_model"]) -> Float[Tensor, "batch hop"]:
        """The loss of each example and hop, from the streams after the last layer."""
        return self.examples.losses_from(self.terms(slice(0, len(x)), x))

    def terms(self, some: slice, x: Float[Tensor, "some read d_model"]) -> Tensor:
        """The loss terms of some examples, from their streams after the last layer."""
        terms = Gathered(len(x))
        for at in range(0, len(x), self.size):
            part = x[at : at + self.size]
            here = slice(at, at + len(part))
            of_all = slice(some.start + at, some.start + here.stop)
            terms.put(here, self.examples.terms_of(self.adapter.unembed(part), of_all))
        return terms.all
