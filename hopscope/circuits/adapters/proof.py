"""The proof that an adapter computes what its model does."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from hopscope.circuits.engine import Adapter, Stream, as_model, check_attention, check_same
from hopscope.errors import CircuitError

PARITY = 1e-3
"""How far, of the largest output, an adapter may be from its model in float32."""
MOVED = 0.05
"""How much of the outputs' distribution (total variation, on average) may be elsewhere in half
precision, where every layer is rounded anew."""


class ProvedAdapter(Adapter):
    """An adapter that is held against its model on its first examples, and again on longer ones."""

    longest = 0
    """The length of the longest examples on which it was held against the model."""

    @abstractmethod
    def enter(self, inputs: Tensor) -> Stream:
        """The residual stream before the first layer, of an adapter that is not proved yet."""

    @abstractmethod
    def expected(self, inputs: Tensor) -> Tensor | None:
        """The model's own outputs (None: they are not known)."""

    @property
    def name(self) -> str:
        """What errors call the model."""
        return type(self.module).__name__

    def embed(self, inputs: Tensor) -> Stream:
        x = self.enter(inputs)
        if inputs.shape[1] > self.longest:
            before, self.longest = self.longest, inputs.shape[1]  # a decoder's `finish` needs it
            try:
                self._prove(inputs[:4], x[:4])
            except BaseException:
                self.longest = before  # what was not proved is proved when it comes again
                raise
        return x

    @torch.no_grad()
    def _prove(self, inputs: Tensor, x: Stream) -> None:
        check_same(x, self.enter(inputs))
        self.project(0, x.repeat(2, 1, 1))  # a mask of the inputs would have fewer rows
        prove(self, x, self.expected(inputs), self.name)


def embedded(embed: Callable[[Tensor], Stream], inputs: Tensor) -> Stream:
    """The residual stream that a user's function makes of the inputs."""
    try:
        return embed(inputs)
    except IndexError as error:
        raise CircuitError(
            f"`embed` has no row for some of the examples' tokens ({int(inputs.min())} … "
            f"{int(inputs.max())}) or {inputs.shape[1]} positions ({error}): draw what the "
            "model knows"
        ) from error


@torch.no_grad()
def prove(adapter: Adapter, x: Stream, expected: Tensor | None, name: str) -> None:
    """Refuse an adapter whose layers do not compute the model's expected outputs from the stream
    before the first layer, draw at random, or compute a position otherwise without the others.
    """
    half = max(1, x.shape[1] // 2)
    for layer in range(adapter.layers):
        heads = adapter.project(layer, x)
        check_attention(layer, heads.weights(), adapter.causal)
        brought = as_model(layer, heads)
        after, again = (adapter.finish(layer, x, brought) for _ in range(2))
        check_same(after, again)
        part = adapter.finish(layer, x[:, -half:], brought[:, :, -half:])
        if part.shape != after[:, -half:].shape or _off(part, after[:, -half:]) > _most(after):
            raise CircuitError(
                f"layer {layer} of {name} computes the last {half} positions otherwise if it is "
                "given those alone: apart from `attend`, a block may not mix positions; use "
                "CallbackModel"
            )
        x = after
    if expected is not None:
        _check_parity(adapter.unembed(x), expected, name)


def _most(numbers: Tensor) -> float:
    """How far numbers of this precision may be off."""
    return PARITY if numbers.dtype.itemsize > 2 else MOVED


def _check_parity(found: Tensor, expected: object, name: str) -> None:
    """Refuse outputs that are not the model's."""
    if not isinstance(expected, Tensor):
        raise CircuitError(
            f"the model of {name} returned {type(expected).__name__}; expected its outputs as one "
            "tensor"
        )
    if (found.ndim, found.shape[-1]) != (expected.ndim, expected.shape[-1]):
        raise CircuitError(
            f"the adapter for {name} gives outputs {list(found.shape)}, the model "
            f"{list(expected.shape)}: does `unembed` do all that the model does after its blocks, "
            "and does the model answer at positions?"
        )
    most, what = _most(expected), "of the largest output"
    read = min(found.shape[1], expected.shape[1])
    found, expected = found[:, -read:].float(), expected[:, -read:].float()
    off = _off(found, expected)
    if most == MOVED:
        gap = (found.softmax(-1) - expected.softmax(-1)).abs().sum(-1) / 2
        off, what = float(gap.mean()), "of the outputs' distribution"
    if not off <= most:
        raise CircuitError(
            f"the adapter for {name} is off by {off:.1e} {what}: this configuration computes "
            "something it does not know; use CallbackModel"
        )


def _off(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max().clamp_min(1e-30))
