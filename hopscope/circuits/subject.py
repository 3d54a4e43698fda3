"""The model under the microscope, whoever made it: walked layer by layer, edited on the way."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from hopscope.circuits.handing import (
    FUSED,
    SHAPE,
    check_asked,
    check_pattern,
    check_same_twice,
    check_taken_back,
)
from hopscope.errors import CircuitError
from hopscope.models import AttentionEdit, Transformer


@runtime_checkable
class Subject(Protocol):
    """A model that can be walked: what enters the first layer, each layer, what leaves the last.

    A layer is taken in three steps, so that everything between them can be replaced: who attends
    to whom, what there is to be carried, and what becomes of each position with what its heads
    carry to it.
    """

    layers: int
    heads: int
    causal: bool

    @property
    def device(self) -> torch.device:
        """The device that the model computes on."""

    def enter(self, inputs: Tensor) -> Tensor:
        """The residual stream before the first layer [batch, seq, d_model]."""

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        """The attention of some heads [batch, head, read, seq], from the last `read` positions."""

    def values(self, number: int, x: Tensor) -> Tensor:
        """What a layer's heads may carry from each position [batch, head, seq, d_head]."""

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        """The residual stream after a layer, at whatever positions it is given.

        `x` [batch, position, d_model] is what stood there before, `mixed` [batch, head, position,
        d_head] what the heads carry there. No position has anything to do with another.
        """

    def leave(self, x: Tensor) -> Tensor:
        """The model's outputs [batch, read, …], from the residual stream after the last layer."""

    def answers_at(self) -> int | None:
        """At how many of the last positions it answers (None: at every one)."""

    def digest(self) -> str:
        """What tells this model from others: a hash of its weights."""


@runtime_checkable
class Dissected(Subject, Protocol):
    """A subject that tells more: what its layers see, and what becomes of what each head carries.

    Contents of single heads need it, and so does telling queries, keys and values of later heads
    apart.
    """

    def seen(self, number: int, x: Tensor) -> Tensor:
        """The residual stream as a layer sees it (the number of layers: as the output does)."""

    def match(
        self, number: int, readers: Tensor, sources: Tensor, read: int, heads: Sequence[int]
    ) -> Tensor:
        """The attention of some heads, with queries from one residual stream, keys from another."""

    def added(self, number: int, mixed: Tensor) -> Tensor:
        """What a layer's heads add to the stream [batch, position, d_model], by what they carry."""


class TransformerSubject:
    """One of hopscope's own transformers."""

    def __init__(self, model: Transformer) -> None:
        if model.fleet:
            raise CircuitError(
                f"this is a fleet of {model.fleet[0]}; examine one member: model.member(i)"
            )
        self.model = model
        self.layers, self.heads = model.config.layers, model.config.heads
        self.causal = model.config.causal

    @property
    def device(self) -> torch.device:
        return device_of(self.model)

    def enter(self, inputs: Tensor) -> Tensor:
        self._check(inputs)
        return self.model.enter(inputs)

    def _check(self, inputs: Tensor) -> None:
        """Refuse examples of another task than the model was made for, as far as they tell."""
        made = self.model.interface
        wanted = [made.length] if made.tokens else [made.length, made.inputs]
        shape, tokens = list(inputs.shape[1:]), not inputs.is_floating_point()
        if (tokens, shape) != (made.tokens, wanted):
            kinds = {True: "tokens", False: "vectors"}
            raise CircuitError(
                f"this model was made for examples of {kinds[made.tokens]} {wanted}; these are "
                f"{kinds[tokens]} {shape}: examine it on its own task (of a run: `load(RUN).task`)"
            )

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        return self.model.blocks[number].pattern(x, read, heads)  # type: ignore[operator, no-any-return]

    def values(self, number: int, x: Tensor) -> Tensor:
        return self.model.blocks[number].values(x)  # type: ignore[operator, no-any-return]

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        return self.model.blocks[number].write(x, mixed)  # type: ignore[operator, no-any-return]

    def leave(self, x: Tensor) -> Tensor:
        return self.model.leave(x)

    def seen(self, number: int, x: Tensor) -> Tensor:
        if number == self.layers:
            return self.model.norm(x)  # type: ignore[no-any-return]
        return self.model.blocks[number].attention_norm(x)  # type: ignore[operator, no-any-return]

    def match(
        self, number: int, readers: Tensor, sources: Tensor, read: int, heads: Sequence[int]
    ) -> Tensor:
        return self.model.blocks[number].pattern(readers, read, heads, sources)  # type: ignore[operator, no-any-return]

    def added(self, number: int, mixed: Tensor) -> Tensor:
        return self.model.blocks[number].attention.written(mixed)  # type: ignore[operator, union-attr, no-any-return]

    def answers_at(self) -> int:
        return self.model.interface.read

    def digest(self) -> str:
        return weights_digest(self.model)


@dataclass(frozen=True)
class Blocks:
    """A module cut into its blocks, by three functions."""

    enter: Callable[[Tensor], Tensor]
    """Inputs → what the first block takes [batch, seq, d_model]."""
    block: Callable[[int, Tensor, Callable[[Tensor], Tensor]], Tensor]
    """`block(number, x, attention)` → what the next block takes. It calls `attention` once, with
    [batch, head, query, key], and goes on with what that returns."""
    leave: Callable[[Tensor], Tensor]
    """What the last block gave → the outputs [batch, read, …]."""

    def forward(self, layers: int, inputs: Tensor, attention: AttentionEdit) -> Tensor:
        """From the inputs to the outputs."""
        x = self.enter(inputs)
        for number in range(layers):
            x = self.block(number, x, partial(attention, number))
        return self.leave(x)

    def streams(self, layers: int, inputs: Tensor) -> list[Tensor]:
        """The residual stream before the first block and after each."""
        found = [self.enter(inputs)]
        for number in range(layers):
            found.append(self.block(number, found[-1], lambda pattern: pattern))
        return found


class Whole:
    """Any module, through one function that hands its attention out and takes it back.

    `forward(inputs, attention)` calls `attention(layer, pattern)` in every layer with
    [batch, head, query, key] and goes on with what that returns. It runs from the first layer
    for every ablation, so it is slower than a walk. It answers at the last `read` positions
    (unset: wherever the exam looks). `streams(inputs)` gives the residual stream before the first
    layer and after each [batch, seq, d_model], for those who ask what it holds. A module that can
    be cut into its blocks (`Whole.of_blocks`) runs from the first block in which an ablation
    differs, and has its streams without more.
    """

    def __init__(
        self,
        forward: Callable[[Tensor, AttentionEdit], Tensor],
        module: nn.Module,
        shape: tuple[int, int],
        read: int | None = None,
        causal: bool = True,
        *,
        streams: Callable[[Tensor], Sequence[Tensor]] | None = None,
    ) -> None:
        if min(shape) < 1:
            raise CircuitError(f"shape (layers, heads) is {shape}; expected at least one of each")
        self.forward, self.module, self.streams = forward, module, streams
        self.layers, self.heads = shape
        self.read, self.causal = read, causal
        self.blocks: Blocks | None = None
        self._known: set[int] = set()  # layers whose attention was looked through
        self._taken_back = False

    @classmethod
    def of_blocks(
        cls,
        blocks: Blocks,
        module: nn.Module,
        shape: tuple[int, int],
        read: int | None = None,
        causal: bool = True,
    ) -> "Whole":
        """A module that can be cut into its blocks."""
        streams = partial(blocks.streams, shape[0])
        whole = cls(partial(blocks.forward, shape[0]), module, shape, read, causal, streams=streams)
        whole.blocks = blocks
        return whole

    @property
    def device(self) -> torch.device:
        return device_of(self.module)

    def outputs(self, inputs: Tensor, attention: AttentionEdit) -> Tensor:
        """The outputs under an edit, once every layer has asked for it."""
        asked: list[int] = []

        def checked(layer: int, pattern: object) -> Tensor:
            asked.append(layer)
            return attention(layer, self.handed_out(layer, pattern, inputs))

        out = self.forward(inputs, checked)
        if not isinstance(out, Tensor):
            raise CircuitError(
                f"the function given to Whole returned {type(out).__name__}; expected the outputs "
                "as one tensor (of transformers' models: their `.logits`)"
            )
        check_asked(asked, self.layers)
        return out

    @torch.no_grad()
    def check(self, inputs: Tensor) -> None:
        """Refuse, when it is first asked, a module that draws at random, or that does not take
        attention back.
        """
        if not self._taken_back:
            check_same_twice(self.outputs, inputs[:2])
            check_taken_back(self.outputs, inputs[:2], (self.layers, self.heads), self.causal)
            self._taken_back = True

    def handed_out(self, layer: int, pattern: object, inputs: Tensor) -> Tensor:
        """A layer's attention, if it is one."""
        expected = (len(inputs), self.heads, inputs.shape[1], inputs.shape[1])
        if not isinstance(pattern, Tensor) or tuple(pattern.shape) != expected:
            got = tuple(pattern.shape) if isinstance(pattern, Tensor) else pattern
            other_heads = isinstance(pattern, Tensor) and len(pattern.shape) == len(expected)
            raise CircuitError(
                f"layer {layer} handed out {got} as attention, expected {expected} (batch, "
                f"head, query, key): {SHAPE if other_heads else FUSED}"
            )
        if layer not in self._known:
            check_pattern(layer, pattern, self.causal)
            self._known.add(layer)
        return pattern

    def answers_at(self) -> int | None:
        return self.read

    def digest(self) -> str:
        return weights_digest(self.module)


def check_finite(numbers: Tensor, what: str) -> None:
    """Refuse what a model with damaged weights computes."""
    if not bool(torch.isfinite(numbers).all()):
        raise CircuitError(
            f"{what} is not a finite number everywhere: the weights are damaged, or its training "
            "diverged; take another model or an earlier checkpoint"
        )


def device_of(module: nn.Module) -> torch.device:
    """Where a module's parameters are (a module without any computes anywhere)."""
    return next((parameter.device for parameter in module.parameters()), torch.device("cpu"))


def weights_digest(module: nn.Module) -> str:
    """SHA-256 over names and weights."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        found.update(name.encode())
        numbers = tensor.detach().cpu().contiguous().flatten()
        found.update(numbers.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
