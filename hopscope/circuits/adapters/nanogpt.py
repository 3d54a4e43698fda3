"""nanoGPT's models, from a checkpoint file alone."""

from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear

from hopscope.circuits.adapters.blocks import BlockAdapter, BlockAttend
from hopscope.circuits.engine import Stream
from hopscope.errors import CircuitError

COMPILED = "_orig_mod."
"""What torch.compile writes before each name."""
MASK = ".attn.bias"
"""The causal mask of older checkpoints; `.attn.c_attn.bias` is a bias."""


def nanogpt(checkpoint: str | Path | Mapping[str, Any] | nn.Module) -> BlockAdapter:
    """An adapter for a model of nanoGPT: the path of a `ckpt.pt`, its dict, or the module."""
    if isinstance(checkpoint, str | Path):
        try:
            checkpoint = torch.load(checkpoint, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise CircuitError(f"there is no file {checkpoint}") from None
        except (OSError, EOFError, UnpicklingError, LookupError, RuntimeError, ValueError) as error:
            raise CircuitError(
                f"{checkpoint} is not a checkpoint that torch can read ({type(error).__name__}): "
                "expected the ckpt.pt of nanoGPT's train.py"
            ) from error
    if isinstance(checkpoint, nn.Module):
        plain = getattr(checkpoint, "_orig_mod", checkpoint)
        sizes, weights = vars(getattr(plain, "config", object)), checkpoint.state_dict()
    elif isinstance(checkpoint, Mapping):
        sizes, weights = checkpoint.get("model_args", {}), checkpoint.get("model", {})
    else:
        sizes, weights = {}, {}
    names = {name.removeprefix(COMPILED): its for name, its in weights.items()}
    if "n_head" not in sizes or "transformer.h.0.attn.c_attn.weight" not in names:
        raise CircuitError(
            f"this {type(checkpoint).__name__} is not a nanoGPT; expected its module, or what its "
            "train.py saves: model_args with n_head, and model with transformer.h.0.attn.c_attn"
        )
    heads, width = int(sizes["n_head"]), names["transformer.h.0.attn.c_attn.weight"].shape[1]
    if heads < 1 or width % heads:
        raise CircuitError(f"n_head is {heads}, which does not divide the width of {width}")
    return _adapter(heads, names)


def _check_tokens(tokens: Tensor, known: int, places: int) -> None:
    """Refuse examples that the model has no tokens or no positions for."""
    if tokens.is_floating_point():
        raise CircuitError(f"the task has vectors; the model takes {known} tokens")
    if int(tokens.max()) >= known:
        raise CircuitError(f"the task has token {int(tokens.max())}; the model knows {known}")
    if tokens.shape[1] > places:
        raise CircuitError(
            f"the examples are {tokens.shape[1]} tokens long; the model has {places} positions"
        )


def _adapter(heads: int, weights: Mapping[str, Tensor]) -> BlockAdapter:
    """The three functions of nanoGPT's forward, without dropout."""
    its = nn.Module()
    for name, tensor in weights.items():
        if not name.endswith(MASK):
            kept = nn.Parameter(tensor.detach(), requires_grad=False)
            its.register_parameter(name.replace(".", "/"), kept)
    layers = 1 + max(int(name.split(".")[2]) for name in weights if ".h." in name)

    def weight(name: str) -> Tensor:
        if name not in weights:
            raise CircuitError(f"this nanoGPT has no {name}: the checkpoint is not whole")
        return its.get_parameter(name.replace(".", "/"))

    def parts(name: str) -> tuple[Tensor, Tensor | None]:
        bias = f"{name}.bias"
        return weight(f"{name}.weight"), weight(bias) if bias in weights else None

    def norm(x: Tensor, name: str) -> Tensor:
        return layer_norm(x, x.shape[-1:], *parts(name))

    def embed(tokens: Tensor) -> Stream:
        places, known = weight("transformer.wpe.weight"), weight("transformer.wte.weight")
        _check_tokens(tokens, len(known), len(places))
        return known[tokens] + places[: tokens.shape[1]]

    def block(layer: int, x: Stream, attend: BlockAttend) -> Stream:
        at = f"transformer.h.{layer}"
        made = linear(norm(x, f"{at}.ln_1"), *parts(f"{at}.attn.c_attn"))
        qkv = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in made.chunk(3, -1))
        brought = attend(*qkv).transpose(1, 2).flatten(2)
        x = x + linear(brought, *parts(f"{at}.attn.c_proj"))
        inner = gelu(linear(norm(x, f"{at}.ln_2"), *parts(f"{at}.mlp.c_fc")))
        return x + linear(inner, *parts(f"{at}.mlp.c_proj"))

    def unembed(x: Stream) -> Tensor:
        return linear(norm(x, "transformer.ln_f"), weight("lm_head.weight"))

    return BlockAdapter(embed, block, unembed, its, (layers, heads))
