"""The sublayers of a block in C, each as one operation for autograd: in bf16 on a CPU.

    x + out(attention(norm(x)))        x + down(GELU(up(norm(x))))

`layers.py` computes the same in torch. Forward and backward are one call each of
`csrc/sublayers.c`: Python between kernels would run from cold caches. With AMX the residual is
added in float32 before rounding, with AVX-512 in bf16 after it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import BFloat16
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from hopscope.models import native
from hopscope.models.layers import NORM_EPS, Attention, Mlp, Norm
from hopscope.models.native import AttentionSublayer, MlpSublayer, Sizes, Sublayer

LANES, LONGEST, WIDEST, BLOCK = 16, 128, 128, 64  # as in csrc/


@dataclass(frozen=True)
class FusedBlocks:
    """The sublayers of bf16 models on a CPU."""

    tiles: bool
    """Whether AMX multiplies."""

    def longest(self, norm: nn.Module, attention: Attention) -> int:
        """The longest sequence whose attention can be computed here; 0: none."""
        inner, width = attention.query.weight.shape[-2:]
        head = attention.width
        whole = head % LANES == inner % BLOCK == width % BLOCK == 0
        return LONGEST if isinstance(norm, Norm) and whole and head <= WIDEST else 0

    def supports_mlp(self, norm: nn.Module, mlp: Mlp) -> bool:
        """Whether an MLP sublayer of this shape can be computed here."""
        return isinstance(norm, Norm) and all(n % BLOCK == 0 for n in mlp.up.weight.shape[-2:])

    def attention(
        self,
        x: BFloat16[Tensor, "*model batch seq d_model"],
        norm: Norm,
        attention: Attention,
        read: int,
    ) -> BFloat16[Tensor, "*model batch read d_model"]:
        """The last `read` positions, with what all heads add there."""
        heads = Heads(attention.heads, attention.causal, read, self.tiles)
        query, value, out = attention.query.pair, attention.value.pair, attention.out.pair
        added: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
            heads, x, *norm.pair, *query, attention.key.weight, *value, *out
        )
        return added

    def mlp(
        self, x: BFloat16[Tensor, "*model batch seq d_model"], norm: Norm, mlp: Mlp
    ) -> BFloat16[Tensor, "*model batch seq d_model"]:
        """Every position, with what the MLP adds there."""
        added: Tensor = _Mlp.apply(self.tiles, x, *norm.pair, *mlp.up.pair, *mlp.down.pair)  # type: ignore[no-untyped-call]
        return added


class Heads(NamedTuple):
    """The number of heads, whether they are causal, the positions read, and whether AMX is used."""

    number: int
    causal: bool
    read: int
    tiles: bool


MLP_INPUTS = "x", "gain", "shift", "up_weight", "up_bias", "down_weight", "down_bias"
MLP_GRADIENTS = (
    "x_gradient", "gain_gradient", "shift_gradient", "up_gradient_weight", "up_gradient_bias",
    "down_gradient_weight", "down_gradient_bias",
)  # fmt: skip
ATTENTION_INPUTS = (
    "x", "gain", "shift", "query_weight", "query_bias", "key_weight", "value_weight", "value_bias",
    "out_weight", "out_bias",
)  # fmt: skip
ATTENTION_GRADIENTS = (
    "x_gradient", "gain_gradient", "shift_gradient", "query_gradient_weight", "query_gradient_bias",
    "out_gradient_weight", "out_gradient_bias", "packed_gradient_weight", "packed_gradient_bias",
)  # fmt: skip


class _Mlp(Function):
    @staticmethod
    def forward(ctx: Any, tiles: bool, *inputs: Tensor) -> Tensor:
        x, gain, _, up, *_ = inputs
        sizes = _sizes(x, gain, x.shape[-2], tiles)
        sizes.hidden = up.shape[-2]
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        _forward(ctx, MlpSublayer(sizes), dict(zip(MLP_INPUTS, inputs, strict=True)), y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        _, *inputs = ctx.saved_tensors
        to = [torch.empty_like(each) for each in inputs]
        gradients = dict(zip(MLP_GRADIENTS, to, strict=True))
        _backward(ctx, MlpSublayer(ctx.sizes), MLP_INPUTS, gradient, gradients)
        return None, *to


class _Attention(Function):
    @staticmethod
    def forward(ctx: Any, heads: Heads, *inputs: Tensor) -> Tensor:
        x, gain, _, query, *_ = inputs
        sizes = _sizes(x, gain, heads.read, heads.tiles)
        sizes.heads, sizes.causal, sizes.inner = heads.number, heads.causal, query.shape[-2]
        y = x.new_empty(*x.shape[:-2], heads.read, x.shape[-1])
        _forward(ctx, AttentionSublayer(sizes), dict(zip(ATTENTION_INPUTS, inputs, strict=True)), y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        _, x, gain, shift, query, query_bias, *_, out, out_bias = ctx.saved_tensors
        whole = ctx.sizes.read == ctx.sizes.seq
        # The gradients of maps that stand side by side: query, key, value; or key and value alone.
        *fleet, inner, width = query.shape
        packed = query.new_empty(*fleet, (2 + whole) * inner, width)
        packed_bias = query.new_empty(*fleet, (2 + whole) * inner)
        to = [torch.empty_like(each) for each in (x, gain, shift, query, query_bias, out, out_bias)]
        gradients = dict(zip(ATTENTION_GRADIENTS, [*to, packed, packed_bias], strict=True))
        _backward(ctx, AttentionSublayer(ctx.sizes), ATTENTION_INPUTS, gradient, gradients)
        weights, biases = packed.split(inner, -2), packed_bias.split(inner, -1)
        of_query = (weights[0], biases[0]) if whole else to[3:5]
        return None, *to[:3], *of_query, weights[-2], weights[-1], biases[-1], *to[5:]


def _sizes(x: Tensor, gain: Tensor, read: int, tiles: bool) -> Sizes:
    models = gain.shape[:-1].numel()
    return Sizes(
        models=models, batch=x.shape[:-2].numel() // models, seq=x.shape[-2], read=read,
        width=x.shape[-1], tiles=tiles, epsilon=NORM_EPS,
    )  # fmt: skip


def _forward(ctx: Any, task: Sublayer, inputs: dict[str, Tensor], y: Tensor) -> None:
    """Compute y, and save what the backward pass needs."""
    inputs = {name: x.contiguous() for name, x in inputs.items()}
    saved = torch.empty(native.saved_bytes(task.sizes), dtype=torch.uint8, device="cpu")
    native.run(task, "", **inputs, y=y, saved=saved)
    ctx.save_for_backward(saved, *inputs.values())
    ctx.sizes = task.sizes


def _backward(
    ctx: Any, task: Sublayer, names: tuple[str, ...], gradient: Tensor, to: dict[str, Tensor]
) -> None:
    """Fill the tensors in `to` with gradients."""
    saved, *inputs = ctx.saved_tensors
    tensors = dict(zip(names, inputs, strict=True))
    native.run(task, "_back", **tensors, saved=saved, gradient=gradient.contiguous(), **to)
