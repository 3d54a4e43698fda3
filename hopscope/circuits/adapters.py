"""Models that hopscope did not make, walked like its own.

`subject_of` takes hopscope's transformers, transformers' GPT-2 and Llama families, TransformerLens
models, torch's own encoders, and anything that is a Subject. An adapter computes each layer from
the model's own modules, and proves on its first examples, and again on longer ones, that this is
what the model computes: nothing is patched, and nothing is left switched on.

For any other module, `Whole` needs one function:

    def forward(inputs, attention): ...      # attention(layer, pattern) -> pattern, in every layer
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hopscope.circuits.encoder import Encoder
from hopscope.circuits.layer_steps import Heads, attention, prove, side_by_side
from hopscope.circuits.subject import Subject, TransformerSubject, Whole, device_of, weights_digest
from hopscope.errors import CircuitError
from hopscope.models import AttentionEdit, Transformer


def subject_of(model: Subject | Whole | nn.Module) -> Subject | Whole:
    """The model, ready to be examined."""
    if isinstance(model, Transformer):
        return TransformerSubject(model)
    if isinstance(model, Subject | Whole):
        return model
    for kind, adapter in ADAPTERS.items():
        if any(cls.__name__ == kind for cls in type(model).__mro__):
            return adapter(model)
    if isinstance(getattr(model, "model", None), nn.Module):
        raise CircuitError(f"a {type(model).__name__} is no model, but has one: give its `.model`")
    known = ", ".join(ADAPTERS)
    raise CircuitError(
        f"there is no adapter for a {type(model).__name__}; there are adapters for {known}, and "
        "hopscope.circuits.Whole for any module whose attention you can hand out and replace"
    )


class HuggingFace:
    """What transformers' models have in common: token ids in, the head's logits out."""

    causal = True

    def __init__(self, model: Any, body: Any) -> None:
        self.model, self.body = model.eval(), body
        self.layers, self.heads = model.config.num_hidden_layers, model.config.num_attention_heads
        self._proven = 0  # the length of the longest examples that the walk was proved on

    @property
    def device(self) -> torch.device:
        return device_of(self.model)

    def enter(self, inputs: Tensor) -> Tensor:
        self._check_room(inputs)
        if inputs.shape[1] > self._proven:
            self._prove(inputs[:4])
        return self._embed(inputs)

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        return self.match(number, x, x, read, heads)

    def match(
        self, number: int, readers: Tensor, sources: Tensor, read: int, heads: Sequence[int]
    ) -> Tensor:
        raise NotImplementedError

    def seen(self, number: int, x: Tensor) -> Tensor:
        return self._norm(x) if number == self.layers else self._attention_norm(number, x)

    def added(self, number: int, mixed: Tensor) -> Tensor:
        raise NotImplementedError

    def values(self, number: int, x: Tensor) -> Tensor:
        raise NotImplementedError

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        raise NotImplementedError

    def leave(self, x: Tensor) -> Tensor:
        x = self._norm(x)
        out: Tensor = self.model.lm_head(x) if hasattr(self.model, "lm_head") else x
        return out

    def answers_at(self) -> None:
        """At every position."""

    def digest(self) -> str:
        return weights_digest(self.model)

    def _check_room(self, inputs: Tensor) -> None:
        """Refuse examples with tokens or places that the model has no embedding for."""
        if inputs.is_floating_point():
            raise CircuitError(
                f"the examples are vectors {list(inputs.shape[1:])}; this model takes tokens"
            )
        tokens, most = self.model.config.vocab_size, int(inputs.max())
        if most >= tokens:
            raise CircuitError(
                f"the examples have the token {most}; the model knows 0 … {tokens - 1}"
            )
        places = self._places()
        if places is not None and inputs.shape[-1] > places:
            raise CircuitError(
                f"the examples are {inputs.shape[-1]} tokens long; the model has {places} places"
            )

    def _places(self) -> int | None:
        """How many places have an embedding; None if any has."""
        return None

    @torch.no_grad()
    def _prove(self, inputs: Tensor) -> None:
        found = self.model(inputs)
        expected = found.logits if hasattr(found, "logits") else found.last_hidden_state
        prove(self, self._embed(inputs), expected, type(self.model).__name__)
        self._proven = inputs.shape[1]

    def _embed(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    def _norm(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _attention_norm(self, number: int, x: Tensor) -> Tensor:
        raise NotImplementedError


class Gpt2(HuggingFace):
    """transformers' GPT2Model or GPT2LMHeadModel, as a subject."""

    def __init__(self, model: Any) -> None:
        super().__init__(model, getattr(model, "transformer", model))

    def _places(self) -> int:
        return int(self.model.config.n_positions)

    def _embed(self, inputs: Tensor) -> Tensor:
        places = torch.arange(inputs.shape[-1], device=inputs.device)
        x: Tensor = self.body.wte(inputs) + self.body.wpe(places)
        return x

    def match(
        self, number: int, readers: Tensor, sources: Tensor, read: int, heads: Sequence[int]
    ) -> Tensor:
        block = self.body.h[number]
        query = self._part(block, block.ln_1(readers[:, -read:]), 0, heads)
        key = self._part(block, block.ln_1(sources), 1, heads)
        scale = query.shape[-1] ** -0.5 if self.model.config.scale_attn_weights else 1.0
        return attention(query, key, scale)

    def values(self, number: int, x: Tensor) -> Tensor:
        block = self.body.h[number]
        return self._part(block, block.ln_1(x), 2, range(self.heads))

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        x = x + self.added(number, mixed)
        block = self.body.h[number]
        out: Tensor = x + block.mlp(block.ln_2(x))
        return out

    def added(self, number: int, mixed: Tensor) -> Tensor:
        out: Tensor = self.body.h[number].attn.c_proj(side_by_side(mixed))
        return out

    def _part(self, block: Any, y: Tensor, part: int, heads: Sequence[int]) -> Heads:
        """Queries, keys or values of some heads: one map makes all three, side by side."""
        all_parts = (block.attn.c_attn.weight, block.attn.c_attn.bias)
        weight, bias = (
            each.unflatten(-1, (3, self.heads, -1))[..., part, list(heads), :].flatten(-2)
            for each in all_parts
        )
        made = torch.nn.functional.linear(y, weight.mT, bias)
        split: Tensor = made.unflatten(-1, (len(heads), -1)).transpose(1, 2)
        return split

    def _norm(self, x: Tensor) -> Tensor:
        out: Tensor = self.body.ln_f(x)
        return out

    def _attention_norm(self, number: int, x: Tensor) -> Tensor:
        out: Tensor = self.body.h[number].ln_1(x)
        return out


class Llama(HuggingFace):
    """LlamaModel, LlamaForCausalLM, and families built like them (Mistral, Qwen2)."""

    def __init__(self, model: Any) -> None:
        super().__init__(model, getattr(model, "model", model))

    def _embed(self, inputs: Tensor) -> Tensor:
        x: Tensor = self.body.embed_tokens(inputs)
        return x

    def match(
        self, number: int, readers: Tensor, sources: Tensor, read: int, heads: Sequence[int]
    ) -> Tensor:
        its = self.body.layers[number].self_attn
        asking = self._attention_norm(number, readers[:, -read:])
        query = self._split(number, its.q_proj(asking))
        key = self._split(number, its.k_proj(self._attention_norm(number, sources)))
        places = torch.arange(key.shape[-2], device=key.device)[None]
        cos, sin = (part[:, None] for part in self.body.rotary_emb(key, places))
        query = query * cos[:, :, -read:] + _rotated(query) * sin[:, :, -read:]
        key = key * cos + _rotated(key) * sin
        query, key = query[:, list(heads)], self._shared(key)[:, list(heads)]
        return attention(query, key, its.scaling)

    def values(self, number: int, x: Tensor) -> Tensor:
        block = self.body.layers[number]
        value = block.self_attn.v_proj(block.input_layernorm(x))
        return self._shared(self._split(number, value))

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        x = x + self.added(number, mixed)
        block = self.body.layers[number]
        out: Tensor = x + block.mlp(block.post_attention_layernorm(x))
        return out

    def added(self, number: int, mixed: Tensor) -> Tensor:
        out: Tensor = self.body.layers[number].self_attn.o_proj(side_by_side(mixed))
        return out

    def _split(self, number: int, y: Tensor) -> Heads:
        width = self.body.layers[number].self_attn.head_dim
        split: Tensor = y.unflatten(-1, (-1, width)).transpose(1, 2)
        return split

    def _shared(self, part: Tensor) -> Tensor:
        """Several heads may share keys and values."""
        return part.repeat_interleave(self.heads // part.shape[1], 1)

    def _norm(self, x: Tensor) -> Tensor:
        out: Tensor = self.body.norm(x)
        return out

    def _attention_norm(self, number: int, x: Tensor) -> Tensor:
        out: Tensor = self.body.layers[number].input_layernorm(x)
        return out


def _rotated(x: Heads) -> Heads:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), -1)


def transformer_lens(bridge: Any) -> Whole:
    """A TransformerLens model (4 and later), through hooks that live as long as one call."""
    layers, heads = bridge.cfg.n_layers, bridge.cfg.n_heads

    def forward(inputs: Tensor, attention: AttentionEdit) -> Tensor:
        def hook(layer: int) -> Callable[..., Tensor]:
            return lambda pattern, **_: attention(layer, pattern)

        names = [(f"blocks.{n}.attn.hook_pattern", hook(n)) for n in range(layers)]
        out: Tensor = bridge.run_with_hooks(inputs, fwd_hooks=names)
        return out

    def streams(inputs: Tensor) -> list[Tensor]:
        kept: list[Tensor] = []

        def keep(stream: Tensor, **_: object) -> Tensor:
            kept.append(stream)
            return stream

        names = ["blocks.0.hook_resid_pre", *(f"blocks.{n}.hook_resid_post" for n in range(layers))]
        bridge.run_with_hooks(inputs, fwd_hooks=[(name, keep) for name in names])
        return kept

    causal = bridge.cfg.attention_dir == "causal"
    return Whole(forward, bridge, (layers, heads), causal=causal, streams=streams)


ADAPTERS: dict[str, Callable[[Any], Subject | Whole]] = {
    "GPT2PreTrainedModel": Gpt2,
    "LlamaPreTrainedModel": Llama,
    "MistralPreTrainedModel": Llama,
    "Qwen2PreTrainedModel": Llama,
    "TransformerBridge": transformer_lens,
    "TransformerEncoder": Encoder,
}
"""Class that a model inherits from → its adapter."""
