"""The halves of a transformer's block, each as one operation for autograd: in bf16 on a CPU.

    x + out(attention(norm(x)))        x + down(GELU(up(norm(x))))

What they replace is written out in `layers.py`. With one operation instead of five or six there is
less to hand from one to the next, and the sums of the residual stream are taken where their
numbers are made, before these are rounded.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import BFloat16
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from hopscope.models import kernels, operations

Pair = tuple[Tensor, Tensor]
"""Gain and shift of a norm, or weight and bias of an affine map."""


class Heads(NamedTuple):
    """How many heads, whether they look back only, and from how many positions."""

    number: int
    causal: bool
    read: int
    epsilon: float
    """Of the norm before them."""


def suit_attention(
    x: Tensor, norm: Pair, maps: tuple[Pair, Tensor, Pair, Pair], heads: Heads
) -> bool:
    """Whether this half can be computed here; the maps are query, key, value and out."""
    query, key, value, out = maps
    width = query[0].shape[-2] // heads.number
    same = query[0].shape == key.shape == value[0].shape and query[1].shape == value[1].shape
    return (
        kernels.suit_attention(x, width)
        and same
        and kernels.suit_norm(x, *norm)
        and kernels.suit_mlp(x, query, out)
        and key.dtype == value[0].dtype == value[1].dtype == x.dtype
    )


def suit_mlp(x: Tensor, norm: Pair, up: Pair, down: Pair) -> bool:
    """Whether this half can be computed here."""
    return kernels.suit_norm(x, *norm) and kernels.suit_mlp(x, up, down)


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
        x, gain, shift, up, up_bias, down, down_bias = (each.contiguous() for each in inputs)
        y, statistics = operations.norm(x, gain, shift, epsilon)
        out, hidden = operations.mlp(y, (up, up_bias), (down, down_bias), also=x)
        ctx.save_for_backward(x, gain, statistics, y, hidden, up, down)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, statistics, y, hidden, up, down = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_up, of_down = operations.mlp_back(y, hidden, up, down, gradient)
        of_norm = operations.norm_back(x, gain, statistics, of_up.x, also=gradient)
        return None, *of_norm, *of_up[1:], *of_down


class _Attention(Function):
    @staticmethod
    def forward(ctx: Any, heads: Heads, *inputs: Tensor) -> Tensor:
        x, gain, shift, query, query_bias, key, value, value_bias, out, out_bias = (
            each.contiguous() for each in inputs
        )
        y, statistics = operations.norm(x, gain, shift, heads.epsilon)
        no_bias = torch.zeros_like(value_bias)
        weights, biases, asked, also = [key, value], [no_bias, value_bias], None, x
        if heads.read == x.shape[-2]:
            weights, biases = [query, *weights], [query_bias, *biases]
        else:
            also = x[..., -heads.read :, :].contiguous()
            reading = y[..., -heads.read :, :].contiguous()
            asked = operations.affine(reading, query, query_bias)
        weight = torch.cat(weights, -2)
        joined = operations.affine(y, weight, torch.cat(biases, -1))
        mixed, logsum = operations.attend(joined, asked, heads.number, heads.causal)
        ctx.heads = heads
        ctx.save_for_backward(
            x, gain, statistics, y, weight, query, joined, asked, mixed, logsum, out
        )
        return operations.affine(mixed, out, out_bias, also=also)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, statistics, y, weight, query, joined, asked, mixed, logsum, out = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_out = operations.affine_back(mixed, out, gradient)
        slopes, asked_slopes = operations.attend_back(
            joined, asked, logsum, ctx.heads.causal, of_out.x
        )
        of_joined = operations.affine_back(y, weight, slopes)
        if asked_slopes is None:
            of_norm = operations.norm_back(x, gain, statistics, of_joined.x, also=gradient)
            parts = _parts(of_joined, 3)
        else:
            reading = y[..., -ctx.heads.read :, :].contiguous()
            of_query = operations.affine_back(reading, query, asked_slopes)
            of_joined.x[..., -ctx.heads.read :, :] += of_query.x
            of_norm = operations.norm_back(x, gain, statistics, of_joined.x)
            of_norm.x[..., -ctx.heads.read :, :] += gradient
            parts = [of_query[1:], *_parts(of_joined, 2)]
        (of_query_maps, (of_key, _), of_value) = parts
        return None, *of_norm, *of_query_maps, of_key, *of_value, *of_out[1:]


def _parts(joined: operations.AffineGradients, count: int) -> list[Pair]:
    """Of the maps that stand side by side."""
    weights, biases = joined.weight.chunk(count, -2), joined.bias.chunk(count, -1)
    return list(zip(weights, biases, strict=True))
