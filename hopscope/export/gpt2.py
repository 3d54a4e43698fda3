"""Convert a model over tokens to a GPT-2 that transformers loads without hopscope.

GPT-2 has the blocks of our model with layer norms and causal attention. It computes the same, with
two differences in its weights:

* Its output has no bias, and the vocabulary of the input, while some tasks have more or fewer
  answers than tokens. The output of the last norm, before gain and shift, has mean 0. So with gain
  1 and shift 1, a row of the output matrix with mean 0 ignores the shift, and a constant
  c / d_model in all of its entries adds c to the logit: the bias, or a very low number for a token
  that is not an answer.
* A block without MLP gets one whose output is 0. A head that is narrower than d_model / heads is
  padded with zeros, and its queries are scaled up to compensate for the smaller scale of scores.
"""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from hopscope import __version__
from hopscope.configs import Task
from hopscope.errors import ModelError
from hopscope.models import Transformer
from hopscope.models.layers import NORM_EPS
from hopscope.store.files import write_bytes
from hopscope.tasks import sampler_of

NEVER = -1e4
"""The logit of a token that is not an answer."""
INSTEAD = "`hopscope circuit RUN --save FILE.safetensors` writes weights of every shape"


def check(model: Transformer) -> None:
    """Raise ModelError, with the reason, if no GPT-2 can compute the same as the model."""
    config = model.config
    width, left = divmod(config.d_model, config.heads)
    reasons = {
        "its inputs are vectors, and those of language models are tokens": (
            not model.interface.tokens
        ),
        "it has no layer norm": config.norm != "layer",
        "its attention looks ahead (causal = false)": not config.causal,
        f"its heads (d_head = {config.head_width}) do not fit into d_model = {config.d_model} side "
        "by side": bool(left) or config.head_width > width,
    }
    for reason, found in reasons.items():
        if found:
            raise ModelError(f"no GPT-2 computes what this model does: {reason}. {INSTEAD}")


def config_of(model: Transformer) -> dict[str, Any]:
    """Return the config of the GPT-2 that computes the same."""
    config, interface = model.config, model.interface
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": max(interface.inputs, interface.outputs),
        "n_positions": interface.length,
        "n_embd": config.d_model,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.mlp_width if config.mlp else 1,
        "activation_function": "gelu",
        "layer_norm_epsilon": NORM_EPS,
        "tie_word_embeddings": False,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "bos_token_id": None,
        "eos_token_id": None,
        "dtype": "float32",
    }


@torch.no_grad()
def weights_of(model: Transformer) -> dict[str, Tensor]:
    """Return the weights of that GPT-2, by GPT-2's names."""
    own = {name: tensor.float() for name, tensor in model.state_dict().items()}
    vocabulary = max(model.interface.inputs, model.interface.outputs)
    missing = vocabulary - model.interface.inputs
    found = {
        "transformer.wte.weight": pad(own["input.token"], (0, 0, 0, missing)),
        "transformer.wpe.weight": own["input.position"],
        "transformer.ln_f.weight": torch.ones(model.config.d_model),
        "transformer.ln_f.bias": torch.ones(model.config.d_model),
        "lm_head.weight": _output(own, vocabulary),
    }
    for layer in range(model.config.layers):
        start = f"blocks.{layer}."
        block = {name.removeprefix(start): own[name] for name in own if name.startswith(start)}
        for name, tensor in _block(block, model).items():
            found[f"transformer.h.{layer}.{name}"] = tensor
    return {name: tensor.contiguous() for name, tensor in found.items()}


def _output(own: dict[str, Tensor], vocabulary: int) -> Float[Tensor, "vocabulary d_model"]:
    """Return the output matrix after a norm with gain 1 and shift 1."""
    head, gain, shift = own["head.weight"], own["norm.weight"], own["norm.bias"]
    rows = head.double() * gain
    rows -= rows.mean(-1, keepdim=True)
    bias = own["head.bias"].double() + head.double() @ shift.double()
    missing = vocabulary - len(rows)
    rows = pad(rows, (0, 0, 0, missing))
    bias = pad(bias, (0, missing), value=NEVER)
    return (rows + bias[:, None] / rows.shape[-1]).float()


def _block(own: dict[str, Tensor], model: Transformer) -> dict[str, Tensor]:
    """Return the weights of one block; GPT-2's matrices are [inputs, outputs]."""
    heads, width = model.config.heads, model.config.head_width
    wide = model.config.d_model // heads
    query, key, value = (own[f"attention.{name}.weight"] for name in ("query", "key", "value"))
    bias, carried = own["attention.query.bias"], own["attention.value.bias"]
    scale = (wide / width) ** 0.5
    maps = [_widened(each, heads, wide) for each in (query * scale, key, value)]
    shifts = [_widened(each, heads, wide) for each in (bias * scale, bias * 0, carried)]
    inner = model.config.mlp_width if model.config.mlp else 1
    d_model = model.config.d_model
    return {
        "ln_1.weight": own["attention_norm.weight"],
        "ln_1.bias": own["attention_norm.bias"],
        "attn.c_attn.weight": torch.cat(maps).T,
        "attn.c_attn.bias": torch.cat(shifts),
        "attn.c_proj.weight": _widened(own["attention.out.weight"].T, heads, wide),
        "attn.c_proj.bias": own["attention.out.bias"],
        "ln_2.weight": own.get("mlp_norm.weight", torch.ones(d_model)),
        "ln_2.bias": own.get("mlp_norm.bias", torch.zeros(d_model)),
        "mlp.c_fc.weight": own.get("mlp.up.weight", torch.zeros(inner, d_model)).T,
        "mlp.c_fc.bias": own.get("mlp.up.bias", torch.zeros(inner)),
        "mlp.c_proj.weight": own.get("mlp.down.weight", torch.zeros(d_model, inner)).T,
        "mlp.c_proj.bias": own.get("mlp.down.bias", torch.zeros(d_model)),
    }


def _widened(tensor: Tensor, heads: int, width: int) -> Tensor:
    """Pad each head in the first axis with zeros to this width."""
    apart = rearrange(tensor, "(head d_head) ... -> head d_head ...", head=heads)
    missing = width - apart.shape[1]
    full = pad(apart, (0, 0) * (apart.ndim - 2) + (0, missing))
    return full.flatten(0, 1)


def vocabulary(task: Task) -> list[str]:
    """Return the words of the vocabulary: the explorer's names of tokens, then the answers that are
    not tokens, as `xHOP=NAME`.
    """
    sampler = sampler_of(task)
    answers = [f"x{hop}={name}" for hop in task.asked_hops() for name in sampler.candidates]
    return [*sampler.names, *answers[len(sampler.names) :]]


def tokenizer_of(words: list[str]) -> dict[str, Any]:
    """Return a tokenizer that splits at spaces and has these words."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": "",  # not in the vocabulary, so that an unknown word is an error
        },
    }


def save(model: Transformer, task: Task, folder: Path, about: dict[str, str]) -> None:
    """Write the model's folder; config.json is last, so that a folder with a config is complete."""
    check(model)
    about = {"format": "pt", "hopscope": __version__, **about}
    write_bytes(folder / "model.safetensors", safetensors.torch.save(weights_of(model), about))
    length = model.interface.length
    files = {
        "tokenizer.json": tokenizer_of(vocabulary(task)),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": length,
        },
        "generation_config.json": {"max_length": length, "do_sample": False},
        "config.json": config_of(model),
    }
    for name, content in files.items():
        write_bytes(folder / name, (json.dumps(content, indent=2) + "\n").encode())
