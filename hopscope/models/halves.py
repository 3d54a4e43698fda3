"""The halves of a transformer's block, each as one operation for autograd: in bf16 on a CPU.

    x + out(attention(norm(x)))        x + down(GELU(up(norm(x))))

What they replace is written out in `layers.py`. Each way, forward and back, is one call of
`native/half.c`: Python between the kernels runs from cold caches, and takes its time. With AMX the
sums of the residual stream are taken where their numbers are made, before these are rounded; with
AVX-512 behind that, as where only some positions are read.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import BFloat16
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from hopscope.models import compiled, kernels
from hopscope.models.compiled import AttentionHalf, MlpHalf, Sizes, places, run

Pair = tuple[Tensor, Tensor]
"""Gain and shift of a norm, or weight and bias of an affine map."""


class Heads(NamedTuple):
    """How many heads, whether they look back only, and from how many positions."""

    number: int
    causal: bool
    read: int
    epsilon: float
    """The epsilon of the norm that stands before the attention."""


def suit_attention(
    x: Tensor, norm: Pair, maps: tuple[Pair, Tensor, Pair, Pair], heads: Heads
) -> bool:
    """Whether this half can be computed here; the maps are query, key, value and out."""
    query, key, value, out = maps
    width = query[0].shape[-2] // heads.number
    same = query[0].shape == key.shape == value[0].shape and query[1].shape == value[1].shape
    return (
        x.device.type == "cpu"
        and kernels.suit_attention(x, width)
        and heads.read <= x.shape[-2]
        and same
        and kernels.suit_norm(x, *norm)
        and kernels.suit_mlp(x, query, out)
        and key.dtype == value[0].dtype == value[1].dtype == x.dtype
    )


def suit_mlp(x: Tensor, norm: Pair, up: Pair, down: Pair) -> bool:
    """Whether this half can be computed here."""
    here = x.device.type == "cpu"
    return here and kernels.suit_norm(x, *norm) and kernels.suit_mlp(x, up, down)


def attention(
    x: BFloat16[Tensor, "*model batch seq width"],
    norm: Pair,
    maps: tuple[Pair, Tensor, Pair, Pair],
    heads: Heads,
) -> BFloat16[Tensor, "*model batch read width"]:
    """The last `read` positions, and what all heads add there."""
    query, key, value, out = maps
    added: Tensor = _Attention.apply(heads, x, *norm, *query, key, *value, *out)  # type: ignore[no-untyped-call]
    return added


def mlp(
    x: BFloat16[Tensor, "*model batch seq width"], norm: Pair, up: Pair, down: Pair, epsilon: float
) -> BFloat16[Tensor, "*model batch seq width"]:
    """Every position, and what the MLP adds there."""
    added: Tensor = _Mlp.apply(epsilon, x, *norm, *up, *down)  # type: ignore[no-untyped-call]
    return added


class _Mlp(Function):
    @staticmethod
    def forward(ctx: Any, epsilon: float, *inputs: Tensor) -> Tensor:
        inputs = tuple(each.contiguous() for each in inputs)
        x, gain, shift, up, up_bias, down, down_bias = inputs
        sizes = _sizes(x, gain, epsilon, x.shape[-2], hidden=up.shape[-2])
        kept, y = _room(sizes), torch.empty_like(x)
        task = MlpHalf(
            sizes,
            **places(
                x=x, gain=gain, shift=shift, up_weight=up, up_bias=up_bias, down_weight=down,
                down_bias=down_bias, y=y, kept=kept,
            ),
        )  # fmt: skip
        run("mlp_half", task)
        ctx.save_for_backward(kept, *inputs)
        ctx.sizes = sizes
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        kept, *inputs = ctx.saved_tensors
        gradient, to = gradient.contiguous(), [torch.empty_like(each) for each in inputs]
        x, gain, _, up, _, down, _ = inputs
        task = MlpHalf(
            ctx.sizes,
            **places(x=x, gain=gain, up_weight=up, down_weight=down, kept=kept, gradient=gradient),
            **_gradients(("x", "gain", "shift"), to),
            **_gradients_of_maps(("up", "down"), to[3:]),
        )
        run("mlp_half_back", task)
        return None, *to


class _Attention(Function):
    @staticmethod
    def forward(ctx: Any, heads: Heads, *inputs: Tensor) -> Tensor:
        inputs = tuple(each.contiguous() for each in inputs)
        x, gain, shift, query, query_bias, key, value, value_bias, out, out_bias = inputs
        sizes = _sizes(x, gain, heads.epsilon, heads.read, inner=query.shape[-2])
        sizes.heads, sizes.causal = heads.number, heads.causal
        kept, y = _room(sizes), x.new_empty(*x.shape[:-2], heads.read, x.shape[-1])
        task = AttentionHalf(
            sizes,
            **places(
                x=x, gain=gain, shift=shift, query_weight=query, query_bias=query_bias,
                key_weight=key, value_weight=value, value_bias=value_bias, out_weight=out,
                out_bias=out_bias, y=y, kept=kept,
            ),
        )  # fmt: skip
        run("attention_half", task)
        ctx.save_for_backward(kept, *inputs)
        ctx.sizes = sizes
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        kept, *inputs = ctx.saved_tensors
        x, gain, shift, query, query_bias, *_, out, out_bias = inputs
        gradient = gradient.contiguous()
        whole = ctx.sizes.read == ctx.sizes.seq
        # Of the maps that stand side by side: query, key and value, or key and value alone.
        *fleet, inner, width = query.shape
        joined = [query.new_empty(*fleet, (2 + whole) * inner, width)]
        joined.append(query.new_empty(*fleet, (2 + whole) * inner))
        ends = [torch.empty_like(each) for each in (x, gain, shift)]
        maps = [torch.empty_like(each) for each in (query, query_bias, out, out_bias)]
        task = AttentionHalf(
            ctx.sizes,
            **places(
                x=x, gain=gain, query_weight=query, out_weight=out, kept=kept, gradient=gradient
            ),
            **_gradients(("x", "gain", "shift"), ends),
            **_gradients_of_maps(("query", "out", "joined"), [*maps, *joined]),
        )
        run("attention_half_back", task)
        weights, biases = joined[0].split(inner, -2), joined[1].split(inner, -1)
        of_query = (weights[0], biases[0]) if whole else maps[:2]
        return None, *ends, *of_query, weights[-2], weights[-1], biases[-1], *maps[2:]


def _sizes(
    x: Tensor, gain: Tensor, epsilon: float, read: int, inner: int = 0, hidden: int = 0
) -> Sizes:
    models = gain.shape[:-1].numel()
    return Sizes(
        models=models, batch=x.shape[:-2].numel() // models, seq=x.shape[-2], read=read,
        width=x.shape[-1], inner=inner, hidden=hidden, tiles=compiled.path() == "amx",
        epsilon=epsilon,
    )  # fmt: skip


def _room(sizes: Sizes) -> Tensor:
    """For what the backward pass needs again."""
    return torch.empty(compiled.half_room(sizes), dtype=torch.uint8, device="cpu")


def _gradients(names: tuple[str, ...], tensors: list[Tensor]) -> dict[str, int]:
    return {f"{name}_gradient": x.data_ptr() for name, x in zip(names, tensors, strict=False)}


def _gradients_of_maps(names: tuple[str, ...], tensors: list[Tensor]) -> dict[str, int]:
    """Weight and bias of each."""
    fields = [f"{name}_gradient_{part}" for name in names for part in ("weight", "bias")]
    return {field: x.data_ptr() for field, x in zip(fields, tensors, strict=True)}
