"""nanoGPT's models, from a checkpoint file alone."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear

from hopscope.circuits.adapters.blocks import BlockAdapter, BlockAttend
from hopscope.circuits.engine import Stream
from hopscope.errors import CircuitError

WRAPPED = re.compile(r"^(_orig_mod\.|module\.)+")
"""What torch.compile and data parallelism write before each name."""
FIRST = "transformer.h.0.attn.c_attn"
SIZES = ("n_head", "n_layer", "n_embd", "block_size", "vocab_size")
LAYER = re.compile(r"transformer\.h\.(\d+)\.")
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
    model = None
    if isinstance(checkpoint, nn.Module):
        plain = getattr(checkpoint, "_orig_mod", checkpoint)
        sizes, weights = vars(getattr(plain, "config", object)), checkpoint.state_dict()
        model = partial(_outputs, plain)
    elif isinstance(checkpoint, Mapping):
        sizes, weights = checkpoint.get("model_args", {}), checkpoint.get("model", {})
    else:
        sizes, weights = {}, {}
    names = {
        WRAPPED.sub("", str(name)): its
        for name, its in (weights.items() if isinstance(weights, Mapping) else ())
        if not str(name).endswith(MASK)
    }
    if not isinstance(sizes, Mapping) or "n_head" not in sizes or f"{FIRST}.weight" not in names:
        raise CircuitError(
            f"this {type(checkpoint).__name__} is not a nanoGPT; expected its module, or what its "
            "train.py saves: model_args with n_head, and model with transformer.h.0.attn.c_attn"
        )
    _check_whole(names, sizes)
    heads, width = sizes["n_head"], names["transformer.wte.weight"].shape[1]
    if width % heads:
        raise CircuitError(f"n_head is {heads}, which does not divide the width of {width}")
    return _adapter(heads, names, model)


def _outputs(module: nn.Module, tokens: Tensor) -> Tensor:
    """What the module itself answers at every position: nanoGPT's does if it is given targets."""
    training, device = module.training, next(module.parameters()).device
    targets = [tokens.to(device)] * (1 + ("targets" in signature(module.forward).parameters))
    module.eval()
    try:
        found = module(*targets)
    finally:
        module.train(training)
    logits: Tensor = found[0] if isinstance(found, tuple) else found
    return logits.to(tokens.device)


def _check_whole(weights: Mapping[str, Any], sizes: Mapping[str, Any]) -> None:
    """Refuse anything but all tensors of a nanoGPT of these sizes."""
    for name in sizes.keys() & {*SIZES}:
        if type(sizes[name]) is not int or sizes[name] < 1:
            raise CircuitError(f"{name} is {sizes[name]!r}; expected a whole number from 1")
    for name, its in weights.items():
        if not isinstance(its, Tensor) or its.is_sparse or not its.is_floating_point():
            raise CircuitError(f"{name} is no dense tensor of numbers: this is not a nanoGPT")
    if len({its.dtype for its in weights.values()}) > 1:
        kinds = sorted({str(its.dtype) for its in weights.values()})
        raise CircuitError(f"the weights are of {', '.join(kinds)}; expected one kind of number")
    expected = dict(_shapes(weights, sizes))
    elsewhere = "a model with other parts needs a BlockAdapter or a CallbackModel of its own"
    for name in sorted(expected.keys() ^ weights.keys()):
        what = "no" if name in expected else "an unknown"
        raise CircuitError(f"this nanoGPT has {what} {name}: is it whole? ({elsewhere})")
    for name, shape in expected.items():
        if tuple(weights[name].shape) != shape:
            raise CircuitError(
                f"{name} is {tuple(weights[name].shape)}; by the other sizes it is {shape}: "
                "expected a nanoGPT that is whole"
            )


def _shapes(
    weights: Mapping[str, Tensor], sizes: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names and shapes of a nanoGPT; what its sizes do not say, its first layer does."""

    def rows(name: str) -> int:
        return next(iter(getattr(weights.get(name), "shape", ())), 0)

    numbers = {match[1] for name in weights if (match := LAYER.match(name))}
    width = sizes.get("n_embd", rows(FIRST + ".weight") // 3)
    inner = rows("transformer.h.0.mlp.c_fc.weight")
    known = sizes.get("vocab_size", rows("transformer.wte.weight"))
    maps: dict[str, tuple[int, ...]] = {"transformer.ln_f": (width,)}
    for number in range(sizes.get("n_layer", len(numbers))):
        at = f"transformer.h.{number}"
        maps |= {
            f"{at}.ln_1": (width,), f"{at}.attn.c_attn": (3 * width, width),
            f"{at}.attn.c_proj": (width, width), f"{at}.ln_2": (width,),
            f"{at}.mlp.c_fc": (inner, width), f"{at}.mlp.c_proj": (width, inner),
        }  # fmt: skip
    yield "transformer.wte.weight", (known, width)
    yield "transformer.wpe.weight", (sizes.get("block_size", rows("transformer.wpe.weight")), width)
    yield "lm_head.weight", (known, width)
    biased = sizes.get("bias", any(name.endswith(".bias") for name in weights))
    for name, shape in maps.items():
        yield f"{name}.weight", shape
        if biased:
            yield f"{name}.bias", shape[:1]


def _check_tokens(tokens: Tensor, known: int, places: int) -> None:
    """Refuse examples that the model has no tokens or no positions for."""
    if tokens.is_floating_point():
        raise CircuitError(f"the task has vectors; the model takes {known} tokens")
    for token in (int(tokens.min()), int(tokens.max())):
        if not 0 <= token < known:
            raise CircuitError(f"the task has token {token}; the model knows {known}")
    if tokens.shape[1] > places:
        raise CircuitError(
            f"the examples are {tokens.shape[1]} tokens long; the model has {places} positions"
        )


def _adapter(
    heads: int, weights: Mapping[str, Tensor], model: Callable[[Tensor], Tensor] | None
) -> BlockAdapter:
    """The three functions of nanoGPT's forward, without dropout."""
    its = nn.Module()
    for name, tensor in weights.items():
        kept = nn.Parameter(tensor.detach(), requires_grad=False)
        its.register_parameter(name.replace(".", "/"), kept)
    layers = len({match[1] for name in weights if (match := LAYER.match(name))})

    def weight(name: str) -> Tensor:
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

    return BlockAdapter(embed, block, unembed, its, (layers, heads), model=model)
