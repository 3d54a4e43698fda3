"""`TransformerAdapter`: hopscope's own transformers."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from torch import Tensor
from torch.nn.functional import layer_norm

from hopscope.circuits.engine import (
    Adapter,
    Brought,
    Heads,
    Stream,
    Weights,
)
from hopscope.errors import CircuitError
from hopscope.models import Transformer


class TransformerHeads:
    """The heads of one block; queries, keys and values are computed on first use."""

    def __init__(self, block: Any, stream: Stream) -> None:
        self.block, self.stream = block, stream

    @cached_property
    def values(self) -> Brought:
        """The values of all heads at every position."""
        return self.block.values(self.stream)  # type: ignore[no-any-return]

    def weights(
        self,
        read: int | None = None,
        heads: Sequence[int] | None = None,
        keys: Heads | None = None,
    ) -> Weights:
        """The attention of some heads from the last `read` positions (default: all of each)."""
        every = range(self.block.attention.heads) if heads is None else heads
        sources = None if keys is None else keys.stream
        found: Weights = self.block.pattern(
            self.stream, read or self.stream.shape[1], every, sources
        )
        return found

    def rows(self, some: slice) -> "TransformerHeads":
        """The same for some rows of the batch."""
        return TransformerHeads(self.block, self.stream[some])


class TransformerAdapter(Adapter):
    """An adapter for one of hopscope's own transformers."""

    def __init__(self, model: Transformer) -> None:
        if model.fleet:
            raise CircuitError(
                f"this is a fleet of {model.fleet[0]}; examine one member: model.member(i)"
            )
        self.model = self.module = model
        self.layers, self.heads = model.config.layers, model.config.heads
        self.causal = model.config.causal

    def embed(self, inputs: Tensor) -> Stream:
        self._check(inputs)
        return self.model.enter(inputs)

    def _check(self, inputs: Tensor) -> None:
        """Raise CircuitError if the shape of the examples shows that they are of another task."""
        made = self.model.interface
        wanted = [made.length] if made.tokens else [made.length, made.inputs]
        shape, tokens = list(inputs.shape[1:]), not inputs.is_floating_point()
        if (tokens, shape) != (made.tokens, wanted):
            kinds = {True: "tokens", False: "vectors"}
            raise CircuitError(
                f"this model was made for examples of {kinds[made.tokens]} {wanted}; these are "
                f"{kinds[tokens]} {shape}: examine it on its own task (of a run: `load(RUN).task`)"
            )

    def project(self, layer: int, x: Stream) -> TransformerHeads:
        return TransformerHeads(self.model.blocks[layer], x)

    def finish(self, layer: int, x: Stream, brought: Brought) -> Stream:
        return self.model.blocks[layer].write(x, brought)  # type: ignore[operator, no-any-return]

    def added(self, layer: int, brought: Brought) -> Stream:
        return self.model.blocks[layer].attention.written(brought)  # type: ignore[operator, union-attr, no-any-return]

    def normed(self, x: Stream) -> Stream:
        return layer_norm(x, x.shape[-1:]) if self.model.config.norm == "layer" else x

    def unembed(self, x: Stream) -> Tensor:
        return self.model.leave(x)

    def answers_at(self) -> int:
        return self.model.interface.read
