"""`EncoderAdapter`: torch.nn.TransformerEncoder, alone or inside another module."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import linear

from hopscope.circuits.adapters.blocks import attention_weights
from hopscope.circuits.adapters.proof import ProvedAdapter, embedded
from hopscope.circuits.engine import Brought, Projected, Stream, check_one_device
from hopscope.errors import CircuitError


class EncoderAdapter(ProvedAdapter):
    """An adapter for a stack of torch's encoder layers.

    `embed` maps the model's inputs to the stream before the first layer, and `unembed` the
    encoder's outputs to the model's. If `model` is given, outputs are checked against its outputs.
    """

    name = "nn.TransformerEncoder"

    def __init__(
        self,
        encoder: nn.TransformerEncoder,
        *,
        embed: Callable[[Tensor], Tensor] = lambda inputs: inputs,
        unembed: Callable[[Tensor], Tensor] = lambda x: x,
        model: nn.Module | None = None,
        causal: bool = False,
    ) -> None:
        if not len(encoder.layers):
            raise CircuitError("this nn.TransformerEncoder has no layers")
        check_one_device(encoder)
        self.encoder, self.model, self.causal = encoder.eval(), model, causal
        self.module = (model or encoder).eval()
        self._embed, self._unembed = embed, unembed
        self.blocks: list[Any] = list(encoder.layers)
        self.layers, attention = len(self.blocks), self.blocks[0].self_attn
        self.heads, self.width = attention.num_heads, attention.embed_dim
        if not attention.batch_first:
            raise CircuitError(
                "this nn.TransformerEncoder takes [seq, batch, width]; make it with "
                "batch_first=True, its weights fit"
            )

    def enter(self, inputs: Tensor) -> Stream:
        x = embedded(self._embed, inputs)
        if x.shape[-1] != self.width or not x.is_floating_point():
            raise CircuitError(
                f"what enters the {self.name} is {list(x.shape[1:])}; it takes {self.width} "
                "numbers a position: give EncoderAdapter an `embed`"
            )
        return x

    def expected(self, inputs: Tensor) -> Tensor:
        """The outputs of the model's own forward pass."""
        if self.model is not None:
            out: Tensor = self.model(inputs)
            return out
        x = self._embed(inputs)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        encoded: Tensor = self.encoder(x, mask=mask if self.causal else None)
        return self._unembed(encoded)

    def project(self, layer: int, x: Stream) -> Projected:
        its = self.blocks[layer]
        normed = its.norm1(x) if its.norm_first else x
        made = linear(normed, its.self_attn.in_proj_weight, its.self_attn.in_proj_bias)
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in made.chunk(3, -1)
        )
        return Projected(x, query, key, value, partial(attention_weights, causal=self.causal))

    def finish(self, layer: int, x: Stream, brought: Brought) -> Stream:
        its = self.blocks[layer]
        x = x + self.added(layer, brought)
        x = x if its.norm_first else its.norm1(x)
        y = its.norm2(x) if its.norm_first else x
        x = x + its.linear2(its.activation(its.linear1(y)))
        out: Tensor = x if its.norm_first else its.norm2(x)
        return out

    def added(self, layer: int, brought: Brought) -> Stream:
        out: Tensor = self.blocks[layer].self_attn.out_proj(brought.transpose(1, 2).flatten(2))
        return out

    def unembed(self, x: Stream) -> Tensor:
        return self._unembed(x if self.encoder.norm is None else self.encoder.norm(x))
