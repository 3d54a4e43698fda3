"""Models that hopscope did not make, walked like its own.

`subject_of` takes hopscope's transformers, transformers' GPT-2 and Llama families, TransformerLens
models, and anything that is a Subject. An adapter computes each layer from the model's own
modules, and proves on its first examples that this is what the model computes: nothing is
patched, and nothing is left switched on.

For any other module, `Whole` needs one function:

    def forward(inputs, attention): ...      # attention(layer, pattern) -> pattern, in every layer
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopscope.circuits.subject import Subject, TransformerSubject, Whole, device_of, weights_digest
from hopscope.errors import CircuitError
from hopscope.models import AttentionEdit, Edits, Transformer

Heads = Float[Tensor, "batch head seq d_head"]
PARITY = 1e-3
"""How far, of the largest output, an adapter may be from its model."""


def subject_of(model: Subject | Whole | nn.Module) -> Subject | Whole:
    """The model, ready to be examined."""
    if isinstance(model, Transformer):
        return TransformerSubject(model)
    if isinstance(model, Subject | Whole):
        return model
    for kind, adapter in ADAPTERS.items():
        if any(cls.__name__ == kind for cls in type(model).__mro__):
            return adapter(model)
    known = ", ".join(ADAPTERS)
    raise CircuitError(
        f"there is no adapter for a {type(model).__name__}; there are adapters for {known}, and "
        "hopscope.circuits.Whole for any module whose attention you can hand out and replace"
    )


def attended(
    query: Heads, key: Heads, value: Heads, scale: float, layer: int, edits: Edits
) -> Float[Tensor, "batch seq width"]:
    """Causal attention of all heads, edited; what they carry, side by side."""
    if edits.given is None:
        seq = query.shape[-2]
        hidden = torch.ones(seq, seq, dtype=torch.bool, device=query.device).triu(1)
        scores = (query.float() @ key.float().mT) * scale
        pattern = scores.masked_fill(hidden, -torch.inf).softmax(-1).to(value.dtype)
    else:
        pattern = edits.given.to(value.dtype)
    if edits.attention is not None:
        pattern = edits.attention(layer, pattern)
    mixed = pattern @ value
    if edits.heads is not None:
        mixed = edits.heads(layer, mixed)
    return mixed.transpose(1, 2).flatten(2)


class HuggingFace:
    """What transformers' models have in common: token ids in, the head's logits out."""

    causal = True

    def __init__(self, model: Any, body: Any) -> None:
        self.model, self.body = model.eval(), body
        self.layers, self.heads = model.config.num_hidden_layers, model.config.num_attention_heads
        self._proven = False

    @property
    def device(self) -> torch.device:
        return device_of(self.model)

    def enter(self, inputs: Tensor) -> Tensor:
        if not self._proven:
            self._prove(inputs[:4])
        return self._embed(inputs)

    def layer(self, number: int, x: Tensor, edits: Edits, read: int | None) -> Tensor:
        out = self._block(number, x, edits)
        return out if read is None else out[:, -read:]

    def leave(self, x: Tensor) -> Tensor:
        x = self._norm(x)
        out: Tensor = self.model.lm_head(x) if hasattr(self.model, "lm_head") else x
        return out

    def answers_at(self) -> int:
        return 1

    def digest(self) -> str:
        return weights_digest(self.model)

    @torch.no_grad()
    def _prove(self, inputs: Tensor) -> None:
        """The walk must compute what the model computes."""
        x = self._embed(inputs)
        for number in range(self.layers):
            x = self._block(number, x, Edits())
        found = self.model(inputs)
        expected = found.logits if hasattr(found, "logits") else found.last_hidden_state
        worst = float((self.leave(x) - expected).abs().max() / expected.abs().max())
        if not worst <= PARITY:
            raise CircuitError(
                f"the adapter for {type(self.model).__name__} is off by {worst:.1e} of the largest "
                "output: this configuration computes something it does not know; use Whole"
            )
        self._proven = True

    def _embed(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    def _block(self, number: int, x: Tensor, edits: Edits) -> Tensor:
        raise NotImplementedError

    def _norm(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class Gpt2(HuggingFace):
    """GPT2Model and GPT2LMHeadModel."""

    def __init__(self, model: Any) -> None:
        super().__init__(model, getattr(model, "transformer", model))

    def _embed(self, inputs: Tensor) -> Tensor:
        places = torch.arange(inputs.shape[-1], device=inputs.device)
        x: Tensor = self.body.wte(inputs) + self.body.wpe(places)
        return x

    def _block(self, number: int, x: Tensor, edits: Edits) -> Tensor:
        block = self.body.h[number]
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in block.attn.c_attn(block.ln_1(x)).chunk(3, dim=-1)
        )
        scale = query.shape[-1] ** -0.5 if self.model.config.scale_attn_weights else 1.0
        x = x + block.attn.c_proj(attended(query, key, value, scale, number, edits))
        out: Tensor = x + block.mlp(block.ln_2(x))
        return out

    def _norm(self, x: Tensor) -> Tensor:
        out: Tensor = self.body.ln_f(x)
        return out


class Llama(HuggingFace):
    """LlamaModel, LlamaForCausalLM, and families built like them (Mistral, Qwen2)."""

    def __init__(self, model: Any) -> None:
        super().__init__(model, getattr(model, "model", model))

    def _embed(self, inputs: Tensor) -> Tensor:
        x: Tensor = self.body.embed_tokens(inputs)
        return x

    def _block(self, number: int, x: Tensor, edits: Edits) -> Tensor:
        block = self.body.layers[number]
        attention, y = block.self_attn, block.input_layernorm(x)
        width = attention.head_dim
        query, key, value = (
            project(y).unflatten(-1, (-1, width)).transpose(1, 2)
            for project in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        places = torch.arange(x.shape[1], device=x.device)[None]
        cos, sin = (part[:, None] for part in self.body.rotary_emb(value, places))
        query, key = (part * cos + _rotated(part) * sin for part in (query, key))
        # Several heads may share keys and values.
        key, value = (
            part.repeat_interleave(self.heads // part.shape[1], 1) for part in (key, value)
        )
        x = x + attention.o_proj(attended(query, key, value, attention.scaling, number, edits))
        out: Tensor = x + block.mlp(block.post_attention_layernorm(x))
        return out

    def _norm(self, x: Tensor) -> Tensor:
        out: Tensor = self.body.norm(x)
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

    return Whole(forward, bridge, (layers, heads))


ADAPTERS: dict[str, Callable[[Any], Subject | Whole]] = {
    "GPT2PreTrainedModel": Gpt2,
    "LlamaPreTrainedModel": Llama,
    "MistralPreTrainedModel": Llama,
    "Qwen2PreTrainedModel": Llama,
    "TransformerBridge": transformer_lens,
}
"""Class that a model inherits from → its adapter."""
