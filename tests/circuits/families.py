"""Tiny decoders of transformers, of many families."""

import warnings
from typing import Any

import pytest
import torch
from slow import scaled

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers")

TOKENS = 64
COMMON = {"vocab_size": TOKENS, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
GPT2 = {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 24}
LLAMA = {
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32,
    "intermediate_size": 40, "max_position_embeddings": 24,
}  # fmt: skip
SINGLE = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
WIDE = {**LLAMA, "head_dim": 16}
SLIDING = {**WIDE, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}

FAMILIES: dict[str, tuple[dict[str, Any], str | None]] = {
    "gpt2": (GPT2, "ln_2"),
    "gpt_bigcode": (GPT2, "ln_2"),
    "llama": (LLAMA, "post_attention_layernorm"),
    "mistral": ({**LLAMA, "sliding_window": 4}, "post_attention_layernorm"),
    "qwen2": (LLAMA, "post_attention_layernorm"),
    "qwen3": (WIDE, "post_attention_layernorm"),
    "gemma": (WIDE, "post_attention_layernorm"),
    "gemma2": ({**SLIDING, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 2.0}, None),
    "gemma3_text": ({**SLIDING, "query_pre_attn_scalar": 8}, None),
    "gpt_neox": (SINGLE, None),
    "olmo": (LLAMA, "post_attention_layernorm"),
    "olmo2": (LLAMA, None),
    "phi": (SINGLE, None),
    "phi3": (LLAMA, "post_attention_layernorm"),
    "opt": ({**SINGLE, "ffn_dim": 40, "word_embed_proj_dim": 32}, "final_layer_norm"),
    "smollm3": (LLAMA, "post_attention_layernorm"),
    "granite": ({**LLAMA, "residual_multiplier": 0.3}, "post_attention_layernorm"),
    "gpt_oss": (
        {**SLIDING, "num_local_experts": 2, "num_experts_per_tok": 1},
        "post_attention_layernorm",
    ),
    "mixtral": ({**LLAMA, "num_local_experts": 2}, "post_attention_layernorm"),
    "starcoder2": (LLAMA, "post_attention_layernorm"),
    "stablelm": (LLAMA, "post_attention_layernorm"),
    "cohere": (LLAMA, None),
}
"""Family → its configuration, and the module that takes the stream with what the heads added (none
where a layer normalises that first, or computes its two parts side by side)."""


def of_family(family: str, attention: str | None = "eager", **config: Any) -> Any:
    """A random model; attention None: as transformers computes it for this family."""
    configured = transformers.AutoConfig.for_model(family, **{**COMMON, **config})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(configured, attn_implementation=attention)
    return model.float().eval()


def made(family: str, **more: Any) -> Any:
    """A random model of one of these families, with attention that is far from even."""
    return scaled(of_family(family, **{**FAMILIES[family][0], **more}), 4)
