"""`ProvedAdapter`: checks that an adapter computes the same outputs as its model."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from hopscope.circuits.engine import (
    Adapter,
    Stream,
    as_model,
    check_attention,
    check_same,
    forward,
    without_ruled_out,
)
from hopscope.errors import CircuitError

PARITY = 1e-3
"""The largest allowed error of an adapter in float32, as a share of the largest output."""
MOVED = 0.05
"""The largest allowed mean total variation distance between the output distributions in half
precision, where every layer is rounded."""


AT_ONCE = 4
"""Examples that are compared in one call, so that few outputs are in memory."""


class ProvedAdapter(Adapter):
    """An adapter that is compared with its model on the first examples, and on longer or more
    ones.
    """

    most = 32
    """Outputs are compared on at most this many examples. If a model hides padding in one of ten
    examples, 97 % of draws show it."""
    longest = 0
    """The length of the longest examples on which it was compared with its model."""
    compared = 0
    """The largest number of examples on which it was compared with its model."""

    @abstractmethod
    def enter(self, inputs: Tensor) -> Stream:
        """The residual stream before the first layer, without the check that `embed` makes."""

    @abstractmethod
    def expected(self, inputs: Tensor) -> Tensor | None:
        """The model's own outputs; None if they are not known."""

    @property
    def name(self) -> str:
        """The model's name in error messages."""
        return type(self.module).__name__

    def embed(self, inputs: Tensor) -> Stream:
        x = self.enter(inputs)
        before, some = (self.longest, self.compared), min(len(inputs), self.most)
        if inputs.shape[1] > self.longest or some > self.compared:
            self.longest = max(self.longest, inputs.shape[1])  # a decoder's `finish` needs it
            self.compared = max(self.compared, some)
            try:
                self._prove(inputs[:AT_ONCE], x[:AT_ONCE])
                for at in range(AT_ONCE, some, AT_ONCE):
                    self._compare(inputs[at : at + AT_ONCE], x[at : at + AT_ONCE])
            except BaseException:
                self.longest, self.compared = before  # check again next time
                raise
        return x

    @torch.no_grad()
    def _prove(self, inputs: Tensor, x: Stream) -> None:
        check_same(x, self.enter(inputs))
        self.project(0, x.repeat(2, 1, 1))  # fails if the mask depends on the inputs
        prove(self, x, self.expected(inputs), self.name)

    @torch.no_grad()
    def _compare(self, inputs: Tensor, x: Stream) -> None:
        """Compare the outputs alone."""
        expected = self.expected(inputs)
        if expected is not None:
            _check_parity(self.unembed(forward(self, x)), expected, self.name)


def embedded(embed: Callable[[Tensor], Stream], inputs: Tensor) -> Stream:
    """The residual stream that a user's `embed` returns for the inputs."""
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
    """Raise CircuitError if an adapter's layers do not compute the expected outputs from the stream
    before the first layer, are not deterministic, or mix positions outside of attention.
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
    read = adapter.answers_at() or x.shape[1]
    check_same(*(adapter.unembed(x[:, -read:]) for _ in range(2)))
    if expected is not None:
        _check_parity(adapter.unembed(x), expected, name)


def _most(numbers: Tensor) -> float:
    """The largest allowed error for numbers of this precision."""
    return PARITY if numbers.dtype.itemsize > 2 else MOVED


def _check_parity(found: Tensor, expected: object, name: str) -> None:
    """Raise CircuitError if the outputs differ from the model's."""
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
            "something it does not know (is `causal` right?); use CallbackModel"
        )


def _off(found: Tensor, expected: Tensor) -> float:
    most = without_ruled_out(expected).abs().max().clamp_min(1e-30)
    apart = torch.where(found == expected, 0, found - expected)  # also if both are infinite
    return float(apart.abs().max() / most)
