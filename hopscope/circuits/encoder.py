"""An adapter for the encoders of torch itself, which any module may have inside."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hopscope.circuits.layer_steps import Heads, attention, prove, side_by_side
from hopscope.circuits.subject import device_of, weights_digest
from hopscope.errors import CircuitError


class Encoder:
    """torch.nn.TransformerEncoder, alone or inside of a module of one's own.

    `enter` makes of the model's inputs what the first layer takes, `leave` of the encoder's outputs
    the model's. `model`, if given, is what the walk must agree with.
    """

    def __init__(
        self,
        encoder: nn.TransformerEncoder,
        *,
        enter: Callable[[Tensor], Tensor] = lambda inputs: inputs,
        leave: Callable[[Tensor], Tensor] = lambda x: x,
        model: nn.Module | None = None,
        causal: bool = False,
    ) -> None:
        self.encoder, self.model, self.causal = encoder.eval(), model, causal
        self._enter, self._leave = enter, leave
        self.layers = len(encoder.layers)
        self.heads = self._layer(0).self_attn.num_heads
        self._proven = 0  # the length of the longest examples that the walk was proved on
        if not self._layer(0).self_attn.batch_first:
            raise CircuitError(
                "this nn.TransformerEncoder takes [seq, batch, width]; make it with "
                "batch_first=True, its weights fit"
            )

    @property
    def device(self) -> torch.device:
        return device_of(self.encoder)

    def enter(self, inputs: Tensor) -> Tensor:
        if inputs.shape[1] > self._proven:
            some = inputs[:4]
            prove(self, self._enter(some), self._expected(some), "nn.TransformerEncoder")
            self._proven = inputs.shape[1]
        return self._enter(inputs)

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        return self.match(number, x, x, read, heads)

    def match(
        self, number: int, readers: Tensor, sources: Tensor, read: int, heads: Sequence[int]
    ) -> Tensor:
        asking, offering = (self._normed(number, x) for x in (readers, sources))
        query, key = self._part(number, asking[:, -read:], 0), self._part(number, offering, 1)
        query, key = query[:, list(heads)], key[:, list(heads)]
        return attention(query, key, query.shape[-1] ** -0.5, self.causal)

    def seen(self, number: int, x: Tensor) -> Tensor:
        if number < self.layers:
            return self._normed(number, x)
        return x if self.encoder.norm is None else self.encoder.norm(x)

    def added(self, number: int, mixed: Tensor) -> Tensor:
        out: Tensor = self._layer(number).self_attn.out_proj(side_by_side(mixed))
        return out

    def values(self, number: int, x: Tensor) -> Tensor:
        return self._part(number, self._normed(number, x), 2)

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        layer = self._layer(number)
        x = x + self.added(number, mixed)
        x = x if layer.norm_first else layer.norm1(x)
        y = layer.norm2(x) if layer.norm_first else x
        x = x + layer.linear2(layer.activation(layer.linear1(y)))
        out: Tensor = x if layer.norm_first else layer.norm2(x)
        return out

    def leave(self, x: Tensor) -> Tensor:
        return self._leave(self.seen(self.layers, x))

    def answers_at(self) -> None:
        """At every position."""

    def digest(self) -> str:
        return weights_digest(self.model or self.encoder)

    def _layer(self, number: int) -> Any:
        return self.encoder.layers[number]

    def _normed(self, number: int, x: Tensor) -> Tensor:
        layer = self._layer(number)
        out: Tensor = layer.norm1(x) if layer.norm_first else x
        return out

    def _part(self, number: int, y: Tensor, part: int) -> Heads:
        """Queries, keys or values of all heads."""
        its = self._layer(number).self_attn
        weight = its.in_proj_weight.chunk(3)[part]
        bias = None if its.in_proj_bias is None else its.in_proj_bias.chunk(3)[part]
        made = torch.nn.functional.linear(y, weight, bias)
        split: Tensor = made.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return split

    @torch.no_grad()
    def _expected(self, inputs: Tensor) -> Tensor:
        """What the model says, run in its own way."""
        if self.model is not None:
            out: Tensor = self.model.eval()(inputs)
            return out
        x = self._enter(inputs)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        encoded: Tensor = self.encoder(x, mask=mask if self.causal else None)
        return self._leave(encoded)
