"""The sublayers of a block in C, each as one autograd operation, for bf16 models on a CPU.

    x + out(attention(norm(x)))        x + down(GELU(up(norm(x))))

`layers.py` computes the same in torch. Forward and backward are each one call of
`csrc/sublayers.c`: Python code between kernels would run with cold caches. With AMX the residual is
added in float32 before rounding, with AVX-512 in bf16 after rounding.
"""

from dataclasses import dataclass
from typing import Any

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
    """Whether AMX computes the matrix products."""

    def longest(self, norm: nn.Module, attention: Attention) -> int:
        """The longest sequence whose attention these kernels can compute; 0: none."""
        inner, width = attention.query.weight.shape[-2:]
        head = attention.width
        whole = head % LANES == inner % BLOCK == width % BLOCK == 0
        return LONGEST if isinstance(norm, Norm) and whole and head <= WIDEST else 0

    def supports_mlp(self, norm: nn.Module, mlp: Mlp) -> bool:
        """True if these kernels can compute an MLP sublayer of this shape."""
        return isinstance(norm, Norm) and all(n % BLOCK == 0 for n in mlp.up.weight.shape[-2:])

    def attention(
        self,
        x: BFloat16[Tensor, "*model batch seq d_model"],
        norm: Norm,
        attention: Attention,
        read: int,
    ) -> BFloat16[Tensor, "*model batch read d_model"]:
        """The stream at the last `read` positions after the attention sublayer."""
        sizes = self._sizes(x, norm, read)
        sizes.heads, sizes.causal = attention.heads, attention.causal
        sizes.inner = attention.query.weight.shape[-2]
        query, value, out = attention.query.pair, attention.value.pair, attention.out.pair
        added: Tensor = _Sublayer.apply(  # type: ignore[no-untyped-call]
            AttentionSublayer(sizes), ATTENTION_INPUTS,
            x, *norm.pair, *query, attention.key.weight, *value, *out,
        )  # fmt: skip
        return added

    def mlp(
        self, x: BFloat16[Tensor, "*model batch seq d_model"], norm: Norm, mlp: Mlp
    ) -> BFloat16[Tensor, "*model batch seq d_model"]:
        """The stream at every position after the MLP sublayer."""
        sizes = self._sizes(x, norm, x.shape[-2])
        sizes.hidden = mlp.up.weight.shape[-2]
        added: Tensor = _Sublayer.apply(  # type: ignore[no-untyped-call]
            MlpSublayer(sizes), MLP_INPUTS, x, *norm.pair, *mlp.up.pair, *mlp.down.pair
        )
        return added

    def _sizes(self, x: Tensor, norm: Norm, read: int) -> Sizes:
        models = norm.weight.shape[:-1].numel()
        return Sizes(
            models=models, batch=x.shape[:-2].numel() // models, seq=x.shape[-2], read=read,
            width=x.shape[-1], tiles=self.tiles, epsilon=NORM_EPS,
        )  # fmt: skip


MLP_INPUTS = "x", "gain", "shift", "up_weight", "up_bias", "down_weight", "down_bias"
ATTENTION_INPUTS = (
    "x", "gain", "shift", "query_weight", "query_bias", "key_weight", "value_weight", "value_bias",
    "out_weight", "out_bias",
)  # fmt: skip


class _Sublayer(Function):
    """The stream after a sublayer, at all positions or the last ones. The inputs are x and the
    parameters; `names` are their fields in the C struct.
    """

    @staticmethod
    def forward(ctx: Any, task: Sublayer, names: tuple[str, ...], *inputs: Tensor) -> Tensor:
        tensors = {name: each.contiguous() for name, each in zip(names, inputs, strict=True)}
        x = tensors["x"]
        y = x.new_empty(*x.shape[:-2], task.sizes.read, x.shape[-1])
        saved = torch.empty(native.saved_bytes(task.sizes), dtype=torch.uint8, device="cpu")
        native.compute(task, "", **tensors, y=y, saved=saved)
        ctx.save_for_backward(saved, *tensors.values())
        ctx.kind, ctx.sizes, ctx.names = type(task), task.sizes, names
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved, *inputs = ctx.saved_tensors
        tensors = dict(zip(ctx.names, inputs, strict=True))
        packed, parts = _packed(tensors, ctx.sizes) if ctx.kind is AttentionSublayer else ({}, {})
        own = {name: torch.empty_like(x) for name, x in tensors.items() if name not in parts}
        native.compute(
            ctx.kind(ctx.sizes), "_back", **tensors, saved=saved, gradient=gradient.contiguous(),
            **{f"{name}_gradient": its for name, its in (own | packed).items()},
        )  # fmt: skip
        return None, None, *((own | parts)[name] for name in ctx.names)


def _packed(
    tensors: dict[str, Tensor], sizes: Sizes
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Memory for the gradients of maps that are computed as one (query, key and value, or only key
    and value), and the views of it that are the gradients of each map.
    """
    maps = ["query"] * (sizes.read == sizes.seq) + ["key", "value"]
    *fleet, inner, width = tensors["query_weight"].shape
    weight = tensors["query_weight"].new_empty(*fleet, len(maps) * inner, width)
    bias = weight.new_empty(*fleet, len(maps) * inner)
    weights = zip(maps, weight.split(inner, -2), strict=True)
    biases = zip(maps, bias.split(inner, -1), strict=True)
    parts = {f"{name}_weight": part for name, part in weights}
    parts |= {f"{name}_bias": part for name, part in biases if name != "key"}  # keys have no bias
    return {"packed_weight": weight, "packed_bias": bias}, parts
