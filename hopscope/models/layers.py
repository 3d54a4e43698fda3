"""The layers of a transformer, for one model or a fleet, in torch.

The parameters and activations of a fleet have a model axis in front.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from hopscope.configs import Model
from hopscope.models import torch_private

NORM_EPS = 1e-5
"""The number added to the variance in a norm: PyTorch's default."""


class Affine(nn.Module):
    """The affine map x ↦ W x + b; each model of a fleet has its own weights."""

    def __init__(
        self, fleet: tuple[int, ...], inputs: int, outputs: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(*fleet, outputs, inputs, dtype=torch.float32))
        self.bias = (
            nn.Parameter(torch.zeros(*fleet, outputs, dtype=torch.float32)) if bias else None
        )

    @property
    def pair(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of a map with a bias."""
        assert self.bias is not None
        return self.weight, self.bias

    def forward(
        self, x: Float[Tensor, "*model batch seq inputs"]
    ) -> Float[Tensor, "*model batch seq outputs"]:
        return affine(x, self.weight, self.bias)


def affine(
    x: Float[Tensor, "*model batch seq inputs"],
    weight: Float[Tensor, "*model outputs inputs"],
    bias: Float[Tensor, "*model outputs"] | None,
) -> Float[Tensor, "*model batch seq outputs"]:
    """W x + b at every position, each model of a fleet with its own W and b."""
    if weight.ndim == 2:
        return functional.linear(x, weight, bias)
    rows = x.flatten(-3, -2)
    y = rows @ weight.mT if bias is None else torch.baddbmm(bias[:, None], rows, weight.mT)
    out: Tensor = y.unflatten(-2, x.shape[-3:-1])
    return out


def last_positions(
    x: Float[Tensor, "*rest seq width"], read: int
) -> Float[Tensor, "*rest read width"]:
    """The last `read` positions. If these are all, x itself is returned, since the backward pass of
    a slice would allocate a gradient as large as x.
    """
    return x if read == x.shape[-2] else x[..., -read:, :]


def side_by_side(layers: list[Affine]) -> tuple[Tensor, Tensor]:
    """Weight and bias of one map that computes all these maps of the same input, concatenated."""
    biases = [
        each.weight.new_zeros(each.weight.shape[:-1]) if each.bias is None else each.bias
        for each in layers
    ]
    return torch.cat([each.weight for each in layers], -2), torch.cat(biases, -1)


class Norm(nn.Module):
    """Layer normalisation with gain and shift."""

    def __init__(self, fleet: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(*fleet, width, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(*fleet, width, dtype=torch.float32))

    @property
    def pair(self) -> tuple[Tensor, Tensor]:
        """The gain and the shift of the norm."""
        return self.weight, self.bias

    def forward(
        self, x: Float[Tensor, "*model batch seq width"]
    ) -> Float[Tensor, "*model batch seq width"]:
        width = (x.shape[-1],)
        if self.weight.ndim == 1:
            return functional.layer_norm(x, width, self.weight, self.bias, NORM_EPS)
        gain, shift = self.weight[:, None, None], self.bias[:, None, None]
        return torch.addcmul(shift, functional.layer_norm(x, width, eps=NORM_EPS), gain)


class Embedding(nn.Module):
    """Token and position tables, added."""

    def __init__(self, fleet: tuple[int, ...], tokens: int, length: int, width: int) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(*fleet, tokens, width, dtype=torch.float32))
        self.position = nn.Parameter(torch.zeros(*fleet, length, width, dtype=torch.float32))

    def forward(self, tokens: Tensor) -> Float[Tensor, "*model batch seq width"]:
        if self.token.ndim == 2:
            return functional.embedding(tokens, self.token) + self.position[: tokens.shape[-1]]
        model = torch.arange(len(self.token), device=tokens.device)[:, None, None]
        return self.token[model, tokens] + self.position[:, None, : tokens.shape[-1]]


class Mlp(nn.Module):
    """The MLP of a block: an affine map up, GELU, an affine map down."""

    def __init__(self, fleet: tuple[int, ...], config: Model) -> None:
        super().__init__()
        self.up = Affine(fleet, config.d_model, config.mlp_width)
        self.down = Affine(fleet, config.mlp_width, config.d_model)

    def forward(
        self, x: Float[Tensor, "*model batch seq d_model"]
    ) -> Float[Tensor, "*model batch seq d_model"]:
        # The exact GELU: GPT-2's tanh formula costs five times as much on a CPU in bf16.
        out: Tensor = self.down(functional.gelu(self.up(x)))
        return out


class MaskedSoftmax(Function):
    """softmax(scale · scores + mask), computed in float32 for scores of any precision.

    Only the weights are saved for the backward pass, in the precision of the scores: moving a
    float32 copy of every attention matrix would take longer than computing it.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, scale: float) -> Tensor:
        weights = torch.softmax(torch.add(mask, scores, alpha=scale), -1).to(scores.dtype)
        ctx.save_for_backward(weights)
        ctx.scale = scale
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        return torch_private.softmax_backward(weights, gradient).mul_(ctx.scale), None, None


class Attention(nn.Module):
    """Multi-head attention, written out: matrix product, mask, softmax in float32, matrix product.

    At these sizes the backward pass of torch's fused attention takes several times as long in bf16.
    """

    def __init__(self, fleet: tuple[int, ...], config: Model) -> None:
        super().__init__()
        width = config.heads * config.head_width
        self.heads, self.width, self.causal = config.heads, config.head_width, config.causal
        self.scale = config.head_width**-0.5
        self.query = Affine(fleet, config.d_model, width)
        # A key bias would add the same number to all scores of a row; softmax cancels it.
        self.key = Affine(fleet, config.d_model, width, bias=False)
        self.value = Affine(fleet, config.d_model, width)
        self.out = Affine(fleet, width, config.d_model)

    def forward(
        self,
        x: Float[Tensor, "*model batch seq d_model"],
        read: int,
    ) -> Float[Tensor, "*model batch read d_model"]:
        """The sum of what all heads add to the stream at the last `read` positions."""
        packed_qkv, query = self.packed(x, read)
        *first, key, value = packed_qkv.split(self.heads * self.width, -1)
        queries = self._split(first[0] if query is None else query)
        weights = self._weights(queries, self._split(key))
        return self.written(weights @ self._split(value))

    def packed(
        self,
        x: Float[Tensor, "*model batch seq d_model"],
        read: int,
        compute: Callable[..., Tensor] = affine,
    ) -> tuple[Float[Tensor, "*model batch seq packed"], Tensor | None]:
        """Queries, keys and values of every position, concatenated, and None. If not all positions
        are read: keys and values of every position, and queries of the last `read` positions.
        """
        query, maps = None, [self.key, self.value]
        if read == x.shape[-2]:
            maps.insert(0, self.query)
        else:
            query = compute(last_positions(x, read), *self.query.pair)
        # One map for all: separate maps would each read x and write a gradient as large as x.
        return compute(x, *side_by_side(maps)), query

    def pattern(
        self,
        x: Float[Tensor, "*model batch seq d_model"],
        read: int,
        heads: Sequence[int] | None = None,
        sources: Float[Tensor, "*model batch seq d_model"] | None = None,
    ) -> Float[Tensor, "*model batch head read seq"]:
        """The attention of some heads (default: all) from the last `read` positions of `x`, with
        keys from `sources` (default: `x`).
        """
        query = self._split(self.query(x[..., -read:, :]))
        key = self._split(self.key(x if sources is None else sources))
        if heads is not None and len(heads) < self.heads:
            query, key = (part[..., list(heads), :, :] for part in (query, key))
        return self._weights(query, key)

    def values(
        self, x: Float[Tensor, "*model batch seq d_model"]
    ) -> Float[Tensor, "*model batch head seq d_head"]:
        """The values of all heads at every position."""
        return self._split(self.value(x))

    def written(
        self, mixed: Float[Tensor, "*model batch head read d_head"]
    ) -> Float[Tensor, "*model batch read d_model"]:
        """What all heads add to the residual stream, from the output of each."""
        out: Tensor = self.out(rearrange(mixed, "... head seq width -> ... seq (head width)"))
        return out

    def _weights(
        self,
        query: Float[Tensor, "*model batch head read d_head"],
        key: Float[Tensor, "*model batch head seq d_head"],
    ) -> Float[Tensor, "*model batch head read seq"]:
        """The attention, from the queries of the last positions and all keys."""
        mask = _mask(key.shape[-2], self.causal, key.device)[-query.shape[-2] :]
        weights: Tensor = MaskedSoftmax.apply(query @ key.mT, mask, self.scale)  # type: ignore[no-untyped-call]
        return weights

    def _split(self, x: Tensor) -> Float[Tensor, "*model batch head seq d_head"]:
        split: Tensor = x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
        return split


def _mask(length: int, causal: bool, device: torch.device) -> Float[Tensor, "seq seq"]:
    mask = torch.zeros(length, length, device=device)
    if causal:
        mask.masked_fill_(torch.ones_like(mask, dtype=torch.bool).triu(1), -math.inf)
    return mask
