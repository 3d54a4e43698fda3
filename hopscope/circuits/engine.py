"""A forward pass with interventions, from any layer, of any model with an adapter.

An adapter splits a model into four functions. `embed` gives the residual stream before the first
layer, `project` the queries, keys and values of a layer's heads, `finish` the stream after a layer
(from the stream before it and the outputs of its heads), and `unembed` the model's outputs. The
step between project and finish is an argument, `attend`. So every function that reads, replaces or
patches attention is passed in, and no state of the model is changed:

    forward(adapter, adapter.embed(inputs), attend)

Variants are rows of the batch. A pass can begin at any layer, from the stream before it.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from hopscope.errors import CircuitError

Stream = Float[Tensor, "row seq d_model"]
Brought = Float[Tensor, "row head seq d_head"]
"""The output of each head at each position: its attention times its values."""
Queries = Float[Tensor, "row head query d_head"]
HeadKeys = Float[Tensor, "row head key d_head"]
Weights = Float[Tensor, "row head query key"]


@runtime_checkable
class Heads(Protocol):
    """Queries, keys and values of the heads of one layer, before attention is computed."""

    @property
    def stream(self) -> Stream:
        """The residual stream before the layer."""

    @property
    def values(self) -> Brought:
        """The values of all heads at every position."""

    def weights(
        self,
        read: int | None = None,
        heads: Sequence[int] | None = None,
        keys: "Heads | None" = None,
    ) -> Weights:
        """The attention of some heads (default: all) from the last `read` positions (default: all).
        `keys` gives the heads of another stream whose keys are used (default: these heads).
        """

    def rows(self, some: slice) -> "Heads":
        """The same for some rows of the batch."""


class Examined(Protocol):
    """The interface of every model that is examined, layer by layer (`Adapter`) or as a whole. A
    class that inherits from it gets defaults for the device, the norm and the digest.
    """

    layers: int
    heads: int
    causal: bool
    module: nn.Module
    """The module whose weights are used."""

    @property
    def device(self) -> torch.device:
        """The device of the model's parameters (the CPU if it has none)."""
        return next((each.device for each in self.module.parameters()), torch.device("cpu"))

    def normed(self, x: Stream) -> Stream:
        """The normalised stream, as layers see it up to gain and bias; linear probes read it."""
        return layer_norm(x.float(), x.shape[-1:])

    def answers_at(self) -> int | None:
        """The number of last positions at which the model answers (None: at all)."""
        return None

    def digest(self) -> str:
        """A hash of the model's weights, which identifies it."""
        return weights_digest(self.module)


@runtime_checkable
class Adapter(Examined, Protocol):
    """A model of any origin that can be run layer by layer."""

    def embed(self, inputs: Tensor) -> Stream:
        """The residual stream before the first layer."""

    def project(self, layer: int, x: Stream) -> Heads:
        """The queries, keys and values of a layer's heads, from the stream before the layer."""

    def finish(self, layer: int, x: Stream, brought: Brought) -> Stream:
        """The stream after a layer, from the stream before it and the outputs of its heads. Each
        position is computed on its own, so that any subset of positions can be passed.
        """

    def unembed(self, x: Stream) -> Tensor:
        """The model's outputs [row, position, …], from the stream after the last layer."""


@runtime_checkable
class Additive(Adapter, Protocol):
    """An adapter that can also compute what heads add to the residual stream."""

    def added(self, layer: int, brought: Brought) -> Stream:
        """What the heads of a layer together add to the stream, given their outputs."""


Attend = Callable[[int, Heads], Brought]
"""Takes a layer and its heads; returns the output of each head at each position."""


def as_model(_: int, heads: Heads) -> Brought:
    """The outputs of the heads as in the model: their own attention times their values."""
    return heads.weights() @ heads.values


def streams(
    adapter: Adapter,
    x: Stream,
    attend: Attend = as_model,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[Stream]:
    """The stream after each of the layers `start` to `stop` - 1 (default: to the last layer). `x`
    is the stream before layer `start`.
    """
    for layer in range(start, adapter.layers if stop is None else stop):
        x = adapter.finish(layer, x, attend(layer, adapter.project(layer, x)))
        yield x


def forward(
    adapter: Adapter,
    x: Stream,
    attend: Attend = as_model,
    start: int = 0,
    stop: int | None = None,
) -> Stream:
    """The stream before layer `stop` (default: after the last layer). `x` is the stream before
    layer `start`.
    """
    for after in streams(adapter, x, attend, start, stop):
        x = after
    return x


@dataclass(frozen=True)
class Recorded:
    """Streams, attention, values and head outputs of a pass, by layer."""

    streams: list[Stream]
    """The streams before every layer, and after the last."""
    weights: list[Weights]
    values: list[Brought]
    brought: list[Brought]
    """The output of each head of a layer at each position."""


Look = Callable[[int, Heads], tuple[Weights, Brought]]
"""Takes a layer and its heads; returns their attention and their outputs at each position."""


def own_look(_: int, heads: Heads) -> tuple[Weights, Brought]:
    """The attention and the outputs of the heads as in the model."""
    weights = heads.weights()
    return weights, weights @ heads.values


def record(adapter: Adapter, inputs: Tensor, look: Look = own_look) -> Recorded:
    """The recorded pass over some inputs, as in the model or with heads changed by `look`."""
    found = Recorded([], [], [], [])

    def attend(layer: int, heads: Heads) -> Brought:
        weights, brought = look(layer, heads)
        found.streams.append(heads.stream)
        found.weights.append(weights)
        found.values.append(heads.values)
        found.brought.append(brought)
        return brought

    found.streams.append(forward(adapter, adapter.embed(inputs.to(adapter.device)), attend))
    return found


@dataclass(frozen=True)
class Projected:
    """Queries, keys and values of all heads, and the model's function from queries and keys to
    attention. The stream and the queries may be those of the last positions only.
    """

    stream: Stream
    query: Brought
    key: HeadKeys
    values: HeadKeys
    weigh: Callable[[Queries, HeadKeys, "Chosen"], Weights]
    """Takes queries of the last positions, all keys, and the rows and heads that they belong to;
    returns attention, with the model's scale, mask and softmax."""
    some: slice | None = None
    """The rows of the batch that these are (None: all)."""

    def weights(
        self,
        read: int | None = None,
        heads: Sequence[int] | None = None,
        keys: "Heads | None" = None,
    ) -> Weights:
        query, key = self.query[:, :, -(read or self.query.shape[2]) :], self.key
        if keys is not None:
            assert isinstance(keys, Projected)
            key = keys.key
        chosen = range(query.shape[1]) if heads is None else list(heads)
        if len(chosen) < query.shape[1]:
            query, key = query[:, chosen], key[:, chosen]
        return self.weigh(query, key, (self.some or slice(None), chosen))

    def rows(self, some: slice) -> "Projected":
        """The same for some rows of the batch."""
        query, key, values = (each[some] for each in (self.query, self.key, self.values))
        return Projected(self.stream[some], query, key, values, self.weigh, some)


Chosen = tuple[slice, Sequence[int]]
"""A selection of rows of a batch, and of heads."""


def of_chosen(numbers: Tensor, chosen: Chosen) -> Tensor:
    """The part of a mask or bias [row, head, query, key] for some rows and heads. Axes of length 1
    (or missing) are the same for all rows or heads, and are kept.
    """
    rows, heads = chosen
    if numbers.dim() > 3 and len(numbers) > 1:
        numbers = numbers[rows]
    if numbers.dim() > 2 and numbers.shape[-3] > 1:
        numbers = numbers[..., list(heads), :, :]
    return numbers


NEAR = 0.02
"""The tolerance for attention that should sum to one: in bf16 it does not exactly."""


def check_attention(layer: int, weights: Tensor, causal: bool) -> None:
    """Raise CircuitError if the weights are not attention: at least 0, with sums of 1, and if
    causal 0 for later positions.
    """
    if not weights.is_floating_point():
        raise CircuitError(f"layer {layer} has attention of {weights.dtype}; expected shares")
    low, most = float(weights.min()), float(weights.float().sum(-1).max())
    if math.isnan(low):
        raise CircuitError(
            f"layer {layer} has attention that is not a number: a mask hides every position from "
            "some position (let each see itself), or the weights are damaged"
        )
    if low < -NEAR or most > 1 + NEAR:
        raise CircuitError(
            f"layer {layer} has attention of {low:.3g} in a place, and sums up to {most:.3g}; "
            "expected attention after its softmax, without dropout (`module.eval()`): nothing "
            "below 0, and sums of 1"
        )
    later = float(weights.triu(1).max()) if causal else 0.0
    if later > NEAR:
        raise CircuitError(
            f"layer {layer} attends to later positions (by up to {later:.3g}), but the model is "
            "declared causal: pass causal=False (from transformers, only decoders are supported)"
        )


def check_same(first: Tensor, again: Tensor) -> None:
    """Raise CircuitError if two calls with the same inputs gave different outputs. Classes that a
    model rules out (minus infinity) must be the same.
    """
    told = without_ruled_out(first)
    check_finite(told, "an output")
    if not torch.allclose(first, again, rtol=NEAR, atol=NEAR * float(told.abs().mean())):
        raise CircuitError(
            "two calls with the same inputs give different outputs, by up to "
            f"{float((first - again).abs().max()):.3g}: the module draws at random, as dropout "
            "does in training; call `module.eval()` first"
        )


def without_ruled_out(logits: Tensor) -> Tensor:
    """The logits with 0 for classes that a model rules out by minus infinity."""
    return logits.masked_fill(logits == -torch.inf, 0)


def check_finite(numbers: Tensor, what: str) -> None:
    """Raise CircuitError if a number is not finite, as with damaged weights."""
    if not bool(torch.isfinite(numbers).all()):
        raise CircuitError(
            f"{what} is not a finite number everywhere: the weights are damaged, or its training "
            "diverged; take another model or an earlier checkpoint"
        )


def check_tokens(inputs: Tensor, known: int, places: int | None) -> None:
    """Raise CircuitError if a model cannot embed the examples; it has `known` tokens and `places`
    positions (None: any number).
    """
    if inputs.is_floating_point():
        raise CircuitError(
            f"the examples are vectors {list(inputs.shape[1:])}; this model takes tokens"
        )
    low, most = int(inputs.min()), int(inputs.max())
    if low < 0 or most >= known:
        raise CircuitError(
            f"the examples have tokens {low} … {most}; the model knows 0 … {known - 1}"
        )
    if places is not None and inputs.shape[-1] > places:
        raise CircuitError(
            f"the examples are {inputs.shape[-1]} tokens long; the model has {places} positions"
        )


def check_one_device(module: nn.Module) -> None:
    """Raise CircuitError if the parameters are on several devices, or not loaded."""
    devices = {parameter.device for parameter in module.parameters()}
    if len(devices) > 1:
        raise CircuitError(
            f"this model lies on {len(devices)} devices ({', '.join(sorted(map(str, devices)))}); "
            "expected one: load it without device_map, or move it with `.to(device)`"
        )
    if devices == {torch.device("meta")}:
        raise CircuitError(
            "this model has no weights (it lies on the device meta): load them first"
        )


def weights_digest(module: nn.Module) -> str:
    """SHA-256 over the names and values of all weights."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        found.update(name.encode())
        numbers = tensor.detach().cpu().contiguous().flatten()
        found.update(numbers.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
