"""One forward pass with interventions, from any layer, of any model that an adapter can walk.

An adapter knows how a model embeds, what the heads of a layer compute from the residual stream
(`project`), what becomes of each position with what its heads bring there (`finish`), and how the
model reads answers off the last stream (`unembed`). What happens between project and finish is an
argument, `attend`; so whatever looks at attention, replaces or patches it is a function of its own,
and nothing is switched on in the model:

    forward(adapter, adapter.embed(inputs), attend)

Variants are rows of the batch. A pass begins at any layer, from the stream before it.
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
"""What each head brings to each position: its attention times its values."""
Queries = Float[Tensor, "row head query d_head"]
Keys = Float[Tensor, "row head key d_head"]
Weights = Float[Tensor, "row head query key"]


@runtime_checkable
class Heads(Protocol):
    """What the heads of one layer compute from a residual stream, before any of them attends."""

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
        """The attention of some heads (default: all) from the last `read` positions (default: all),
        with the keys of another stream (default: this one).
        """

    def rows(self, some: slice) -> "Heads":
        """The same of some rows of the batch."""


class Examined(Protocol):
    """What is asked of every model, by an `Adapter` or not. A class that inherits from this has the
    device, the norm and the digest of most models.
    """

    layers: int
    heads: int
    causal: bool
    module: nn.Module
    """Whose weights are run."""

    @property
    def device(self) -> torch.device:
        """The device that the model computes on (a module without parameters: anywhere)."""
        return next((each.device for each in self.module.parameters()), torch.device("cpu"))

    def normed(self, x: Stream) -> Stream:
        """The stream as layers see it, up to gains and shifts: what a linear probe reads."""
        return layer_norm(x.float(), x.shape[-1:])

    def answers_at(self) -> int | None:
        """At how many of the last positions it answers (None: at every one)."""
        return None

    def digest(self) -> str:
        """What tells this model from others: a hash of its weights."""
        return weights_digest(self.module)


@runtime_checkable
class Adapter(Examined, Protocol):
    """A model of any origin that can be run layer by layer."""

    def embed(self, inputs: Tensor) -> Stream:
        """The residual stream before the first layer."""

    def project(self, layer: int, x: Stream) -> Heads:
        """What the heads of a layer compute from the stream before it."""

    def finish(self, layer: int, x: Stream, brought: Brought) -> Stream:
        """The stream after a layer, at whatever positions it is given: from what it was there, and
        what each head brings there. No position has anything to do with another.
        """

    def unembed(self, x: Stream) -> Tensor:
        """The model's outputs [row, position, …], from the stream after the last layer."""


@runtime_checkable
class Additive(Adapter, Protocol):
    """An adapter that also tells what heads add to the residual stream."""

    def added(self, layer: int, brought: Brought) -> Stream:
        """What the heads of a layer add to the stream, together, by what they bring."""


Attend = Callable[[int, Heads], Brought]
"""Takes a layer and its heads; returns what each brings to each position."""


def as_model(_: int, heads: Heads) -> Brought:
    """What the heads bring in the model: their own attention times their values."""
    return heads.weights() @ heads.values


def streams(
    adapter: Adapter,
    x: Stream,
    attend: Attend = as_model,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[Stream]:
    """The stream after each layer, from that before layer `start` on; `stop` and later layers
    (default: none) are left out.
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
    """The stream before layer `stop` (default: after the last), from that before layer `start`."""
    for after in streams(adapter, x, attend, start, stop):
        x = after
    return x


@dataclass(frozen=True)
class Recorded:
    """A pass, layer by layer."""

    streams: list[Stream]
    """Before every layer, and after the last."""
    weights: list[Weights]
    values: list[Brought]
    brought: list[Brought]
    """What each head of a layer brings to each position."""


Look = Callable[[int, Heads], tuple[Weights, Brought]]
"""Takes a layer and its heads; returns their attention, and what each brings to each position."""


def own_look(_: int, heads: Heads) -> tuple[Weights, Brought]:
    """The attention of the heads in the model, and what they bring by it."""
    weights = heads.weights()
    return weights, weights @ heads.values


def record(adapter: Adapter, inputs: Tensor, look: Look = own_look) -> Recorded:
    """A pass over some inputs, as in the model or with what heads do changed."""
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
    """Queries, keys and values of all heads, and the model's way from scores to attention. The
    stream and the queries may be those of the last positions alone.
    """

    stream: Stream
    query: Brought
    key: Keys
    values: Keys
    weigh: Callable[[Queries, Keys, "Chosen"], Weights]
    """Queries of the last positions, all keys, of these rows and heads → attention: scale, mask,
    softmax and what else the model has there."""
    some: slice | None = None
    """Which rows these are of the batch that the model was run on (unset: all)."""

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
        """The same of some rows of the batch."""
        query, key, values = (each[some] for each in (self.query, self.key, self.values))
        return Projected(self.stream[some], query, key, values, self.weigh, some)


Chosen = tuple[slice, Sequence[int]]
"""Some rows of a batch, and some heads."""


def of_chosen(numbers: Tensor, chosen: Chosen) -> Tensor:
    """What is added to the scores of some rows and heads, of numbers [row, head, query, key] for
    each of them, or for all alike.
    """
    rows, heads = chosen
    if numbers.dim() > 3 and len(numbers) > 1:
        numbers = numbers[rows]
    if numbers.dim() > 2 and numbers.shape[-3] > 1:
        numbers = numbers[..., list(heads), :, :]
    return numbers


NEAR = 0.02
"""What attention may miss by: in bf16 its sums are not quite one."""


def check_attention(layer: int, weights: Tensor, causal: bool) -> None:
    """Refuse what is not attention: shares that add up to 1, of earlier positions if causal."""
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
            f"layer {layer} attends to later positions (by up to {later:.3g}), and the model was "
            "said to be causal: say causal=False (of transformers, only decoders are read)"
        )


def check_same(first: Tensor, again: Tensor) -> None:
    """Refuse a module that answers otherwise when it is asked again."""
    check_finite(first, "an output")
    if not torch.allclose(first, again, rtol=NEAR, atol=NEAR * float(first.abs().mean())):
        raise CircuitError(
            "two calls with the same inputs give different outputs, by up to "
            f"{float((first - again).abs().max()):.3g}: the module draws at random, as dropout "
            "does in training; call `module.eval()` first"
        )


def check_finite(numbers: Tensor, what: str) -> None:
    """Refuse what a model with damaged weights computes."""
    if not bool(torch.isfinite(numbers).all()):
        raise CircuitError(
            f"{what} is not a finite number everywhere: the weights are damaged, or its training "
            "diverged; take another model or an earlier checkpoint"
        )


def check_tokens(inputs: Tensor, known: int, places: int | None) -> None:
    """Refuse examples that a model of so many tokens and positions (None: any) cannot embed."""
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
    """Refuse a module whose parameters are on several devices, or not loaded."""
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
    """SHA-256 over names and weights."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        found.update(name.encode())
        numbers = tensor.detach().cpu().contiguous().flatten()
        found.update(numbers.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
