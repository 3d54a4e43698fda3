"""`nanogpt`: an adapter for nanoGPT's models, from a checkpoint file or a module."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Embedding, LayerNorm, Linear, ModuleDict, ModuleList
from torch.nn.functional import gelu

from hopscope.circuits.adapters.blocks import BlockAdapter, BlockAttend
from hopscope.circuits.engine import Stream, check_tokens
from hopscope.errors import CircuitError

WRAPPED = re.compile(r"^(_orig_mod\.|module\.)+")
"""The prefixes that torch.compile and data parallelism add to each name."""
FIRST = "transformer.h.0.attn.c_attn"
SIZES = ("n_head", "n_layer", "n_embd", "block_size", "vocab_size")
LAYER = re.compile(r"transformer\.h\.(\d+)\.")
MASK = ".attn.bias"
"""The end of the name of the causal mask in older checkpoints (not a bias, as in
`.attn.c_attn.bias`)."""


def nanogpt(checkpoint: str | Path | Mapping[str, Any] | nn.Module) -> BlockAdapter:
    """An adapter for a nanoGPT model, given as the path of a `ckpt.pt`, its dict, or the module."""
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
    _check_numbers(names, sizes)
    its = _filled(_empty(names, sizes), names)
    heads, width = sizes["n_head"], its.transformer.wte.embedding_dim
    if width % heads:
        raise CircuitError(f"n_head is {heads}, which does not divide the width of {width}")
    return _adapter(heads, its, model)


def _outputs(module: nn.Module, tokens: Tensor) -> Tensor:
    """The module's own logits at every position (nanoGPT needs targets to compute them all)."""
    training, device = module.training, next(module.parameters()).device
    targets = [tokens.to(device)] * (1 + ("targets" in signature(module.forward).parameters))
    module.eval()
    try:
        found = module(*targets)
    finally:
        module.train(training)
    logits: Tensor = found[0] if isinstance(found, tuple) else found
    return logits.to(tokens.device)


def _check_numbers(weights: Mapping[str, Any], sizes: Mapping[str, Any]) -> None:
    """Raise CircuitError for invalid sizes, and for weights that are not of one float type."""
    for name in sizes.keys() & {*SIZES}:
        if type(sizes[name]) is not int or sizes[name] < 1:
            raise CircuitError(f"{name} is {sizes[name]!r}; expected a whole number from 1")
    for name, its in weights.items():
        if not isinstance(its, Tensor) or its.is_sparse or not its.is_floating_point():
            raise CircuitError(f"{name} is not a dense tensor of numbers: this is not a nanoGPT")
    if len({its.dtype for its in weights.values()}) > 1:
        kinds = sorted({str(its.dtype) for its in weights.values()})
        raise CircuitError(f"the weights are of {', '.join(kinds)}; expected one kind of number")


def _empty(weights: Mapping[str, Tensor], sizes: Mapping[str, Any]) -> Any:
    """The modules of a nanoGPT without weights. Sizes that are not given are taken from the shapes
    of the weights.
    """

    def rows(name: str) -> int:
        shape = weights[name].shape if name in weights else ()
        return max(shape[0], 1) if shape else 1

    width = sizes.get("n_embd", max(1, rows(f"{FIRST}.weight") // 3))
    inner = rows("transformer.h.0.mlp.c_fc.weight")
    known = sizes.get("vocab_size", rows("transformer.wte.weight"))
    places = sizes.get("block_size", rows("transformer.wpe.weight"))
    bias = sizes.get("bias", any(name.endswith(".bias") for name in weights))
    layers = len({match[1] for name in weights if (match := LAYER.match(name))})
    said = sizes.get("n_layer", layers)

    def block() -> nn.Module:
        attn = {"c_attn": Linear(width, 3 * width, bias), "c_proj": Linear(width, width, bias)}
        mlp = {"c_fc": Linear(width, inner, bias), "c_proj": Linear(inner, width, bias)}
        norms = {name: LayerNorm(width, bias=bias) for name in ("ln_1", "ln_2")}
        return ModuleDict({**norms, "attn": ModuleDict(attn), "mlp": ModuleDict(mlp)})

    with torch.device("meta"):
        body = {
            "wte": Embedding(known, width),
            "wpe": Embedding(places, width),
            # One missing layer is enough for the error: n_layer may be very large.
            "h": ModuleList(block() for _ in range(min(said, layers + 1))),
            "ln_f": LayerNorm(width, bias=bias),
        }
        head = Linear(width, known, bias=False)
        return ModuleDict({"transformer": ModuleDict(body), "lm_head": head})


def _filled(empty: Any, weights: Mapping[str, Tensor]) -> Any:
    """The modules with these weights; raises CircuitError if names or shapes differ."""
    expected = {name: tuple(its.shape) for name, its in empty.state_dict().items()}
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
    empty.load_state_dict({name: its.detach() for name, its in weights.items()}, assign=True)
    return empty.requires_grad_(requires_grad=False)


def _adapter(heads: int, its: Any, model: Callable[[Tensor], Tensor] | None) -> BlockAdapter:
    """The three functions of nanoGPT's forward, without dropout."""
    body = its.transformer

    def embed(tokens: Tensor) -> Stream:
        check_tokens(tokens, body.wte.num_embeddings, body.wpe.num_embeddings)
        x: Stream = body.wte(tokens) + body.wpe.weight[: tokens.shape[1]]
        return x

    def block(layer: int, x: Stream, attend: BlockAttend) -> Stream:
        part = body.h[layer]
        made = part.attn.c_attn(part.ln_1(x))
        qkv = (each.unflatten(-1, (heads, -1)).transpose(1, 2) for each in made.chunk(3, -1))
        x = x + part.attn.c_proj(attend(*qkv).transpose(1, 2).flatten(2))
        out: Stream = x + part.mlp.c_proj(gelu(part.mlp.c_fc(part.ln_2(x))))
        return out

    def unembed(x: Stream) -> Tensor:
        out: Tensor = its.lm_head(body.ln_f(x))
        return out

    return BlockAdapter(embed, block, unembed, its, (len(body.h), heads), model=model)
