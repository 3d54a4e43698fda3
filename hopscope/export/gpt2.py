"""A model over tokens as a GPT-2 that transformers loads without code of ours.

GPT-2 has the blocks of our model with layer norms and causal attention; two things differ in how
they are written, and none in what is computed:

* Its output has no bias, and its vocabulary is that of the input, while some tasks have more
  answers than tokens, or fewer. What leaves the last norm, before gain and shift, has mean 0. So
  with gain 1 and shift 1, a row of the output whose entries have mean 0 does not see the shift, and
  a constant c / d_model in all of its entries adds c to the logit: the bias, or for a token that is
  no answer a number far below all others.
* A block without MLP has one whose output is 0. A head that is narrower than d_model / heads is
  filled up with zeros, its queries larger by what the scale of its scores shrinks.
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
"""The logit of a token that is no answer."""
INSTEAD = "`hopscope circuit RUN --save FILE.safetensors` writes weights of every shape"


def check(model: Transformer) -> None:
    """Refuse a model that is no GPT-2, and say why."""
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
    """The settings of the GPT-2 that computes the same."""
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
    """The weights of that GPT-2, by its names."""
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
    """The output behind a norm with gain 1 and shift 1."""
    head, gain, shift = own["head.weight"], own["norm.weight"], own["norm.bias"]
    rows = head.double() * gain
    rows -= rows.mean(-1, keepdim=True)
    bias = own["head.bias"].double() + head.double() @ shift.double()
    missing = vocabulary - len(rows)
    rows = pad(rows, (0, 0, 0, missing))
    bias = pad(bias, (0, missing), value=NEVER)
    return (rows + bias[:, None] / rows.shape[-1]).float()


def _block(own: dict[str, Tensor], model: Transformer) -> dict[str, Tensor]:
    """One block. GPT-2 keeps its matrices as [inputs, outputs]."""
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
    """The first axis, head by head, each filled up with zeros to this width."""
    apart = rearrange(tensor, "(head d_head) ... -> head d_head ...", head=heads)
    missing = width - apart.shape[1]
    full = pad(apart, (0, 0) * (apart.ndim - 2) + (0, missing))
    return full.flatten(0, 1)


def vocabulary(task: Task) -> list[str]:
    """A word for every number in the vocabulary: tokens as the explorer calls them; behind them
    answers that are no tokens, by hop.
    """
    sampler = sampler_of(task)
    answers = [f"x{hop}={name}" for hop in task.asked_hops() for name in sampler.candidates]
    return [*sampler.names, *answers[len(sampler.names) :]]


def tokenizer_of(words: list[str]) -> dict[str, Any]:
    """A tokenizer that splits at spaces and knows these words."""
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
            "unk_token": "",  # in no vocabulary: an unknown word is an error
        },
    }


def save(model: Transformer, task: Task, folder: Path, about: dict[str, str]) -> None:
    """Write the folder; its config last, so that what has one is whole."""
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
