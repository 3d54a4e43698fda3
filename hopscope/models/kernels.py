"""Attention, affine maps, norm and MLP of bf16 numbers, on a CPU in C (`native/`), on a GPU in
Triton.

What they replace stands in `layers.py`, runs wherever these do not (float32, a processor without
AVX-512 BF16, an installation without a C compiler, a GPU on which Triton cannot run;
`compiled.path_on()` says which way is taken), and is what the tests hold them to.
On a CPU a training step takes two thirds of its time with them: weights are laid out as the
processor's instruction wants them, no attention weight leaves the cache, and no matrix is
transposed in memory. On a GPU it takes half the time: no attention weight is written to memory, and
fewer tensors are read twice.
Gradients are more exact, since these kernels sum in float32. On a GPU the matrix products of maps
are torch's: cuBLAS multiplies in float32, and may round sums of parts to bf16
(`torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction`).
"""

from types import ModuleType
from typing import Any

import torch
from jaxtyping import BFloat16
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from hopscope.models import compiled, graphic, operations


def suit(*tensors: Tensor) -> bool:
    """True if there are kernels for their device, and every tensor is there, bf16, with a last
    axis that is a multiple of LANES. Whether shapes fit together is for `suit_affine`, `suit_norm`,
    and so on.
    """
    where = tensors[0].device
    return compiled.path_on(where) != "torch" and all(
        x.dtype == torch.bfloat16 and x.device == where and x.shape[-1] % compiled.LANES == 0
        for x in tensors
    )


def suit_norm(x: Tensor, gain: Tensor, shift: Tensor) -> bool:
    """Whether this norm can be computed here."""
    return gain.shape == shift.shape == (*x.shape[:-3], x.shape[-1]) and suit(x, gain, shift)


def suit_affine(x: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Whether this affine map can be computed here."""
    outs, ins = weight.shape[-2:]
    fits = x.ndim > 2 and weight.shape == (*x.shape[:-3], outs, x.shape[-1])
    whole = outs % compiled.BLOCK == 0 and ins % compiled.BLOCK == 0
    return fits and whole and bias.shape == weight.shape[:-1] and suit(x, weight, bias)


def suit_mlp(x: Tensor, up: tuple[Tensor, Tensor], down: tuple[Tensor, Tensor]) -> bool:
    """Whether this MLP can be computed here."""
    *fleet, outs, ins = up[0].shape
    fits = down[0].shape == (*fleet, ins, outs) and down[1].shape == (*fleet, ins)
    return fits and suit(*down) and suit_affine(x, *up)


def suit_attention(x: Tensor, width: int) -> bool:
    """Whether attention between these positions, with heads of this width, can be computed here."""
    seq = x.shape[-2]
    small = seq <= compiled.LONGEST and width <= compiled.WIDEST
    fits = small if x.device.type == "cpu" else graphic.fits(seq, width)
    return fits and width % compiled.LANES == 0 and suit(x)


def _on(x: Tensor) -> ModuleType:
    """The home of the kernels for this tensor's device."""
    return operations if x.device.type == "cpu" else graphic


class _Attend(Function):
    @staticmethod
    def forward(ctx: Any, joined: Tensor, query: Tensor | None, heads: int, causal: bool) -> Tensor:
        joined = joined.contiguous()
        query = None if query is None else query.contiguous()
        out: Tensor
        out, logsum = _on(joined).attend(joined, query, heads, causal)
        ctx.causal = causal
        ctx.save_for_backward(joined, query, logsum)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        joined, query, logsum = ctx.saved_tensors
        gradients = _on(joined).attend_back(
            joined, query, logsum, ctx.causal, gradient.contiguous()
        )
        return *gradients, None, None


class _Affine(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        ctx.save_for_backward(x, weight)
        y: Tensor = _on(x).affine(x, weight, bias.contiguous())
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        x, weight = ctx.saved_tensors
        gradients: tuple[Tensor, ...] = _on(x).affine_back(x, weight, gradient.contiguous())
        return gradients


class _Mlp(Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        x, up, up_bias, down, down_bias = (each.contiguous() for each in inputs)
        y: Tensor
        y, hidden = _on(x).mlp(x, (up, up_bias), (down, down_bias))
        ctx.save_for_backward(x, hidden, up, down)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        x, hidden, up, down = ctx.saved_tensors
        of_up, of_down = _on(x).mlp_back(x, hidden, up, down, gradient.contiguous())
        return *of_up, *of_down


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> Tensor:
        x, gain = x.contiguous(), gain.contiguous()
        y: Tensor
        y, statistics = _on(x).norm(x, gain, shift.contiguous(), epsilon)
        ctx.save_for_backward(x, gain, statistics)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, statistics = ctx.saved_tensors
        return *_on(x).norm_back(x, gain, statistics, gradient.contiguous()), None


def affine(
    x: BFloat16[Tensor, "*model batch seq inputs"],
    weight: BFloat16[Tensor, "*model outputs inputs"],
    bias: BFloat16[Tensor, "*model outputs"],
) -> BFloat16[Tensor, "*model batch seq outputs"]:
    """W x + b at every position."""
    out: Tensor = _Affine.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


def attend(
    joined: BFloat16[Tensor, "*model batch seq joined"],
    query: BFloat16[Tensor, "*model batch read width"] | None,
    heads: int,
    causal: bool,
) -> BFloat16[Tensor, "*model batch read width"]:
    """What heads, side by side in each row, bring to the last `read` positions.

    `joined` holds query, key and value of each position; or, where `query` is given, key and value.
    """
    out: Tensor = _Attend.apply(joined, query, heads, causal)  # type: ignore[no-untyped-call]
    return out


def norm(
    x: BFloat16[Tensor, "*model batch seq width"],
    gain: BFloat16[Tensor, "*model width"],
    shift: BFloat16[Tensor, "*model width"],
    epsilon: float,
) -> BFloat16[Tensor, "*model batch seq width"]:
    """Layer normalisation with gain and shift."""
    out: Tensor = _Norm.apply(x, gain, shift, epsilon)  # type: ignore[no-untyped-call]
    return out


def mlp(
    x: BFloat16[Tensor, "*model batch seq width"],
    up: tuple[BFloat16[Tensor, "*model hidden width"], BFloat16[Tensor, "*model hidden"]],
    down: tuple[BFloat16[Tensor, "*model width hidden"], BFloat16[Tensor, "*model width"]],
) -> BFloat16[Tensor, "*model batch seq width"]:
    """The MLP: an affine map up, GELU, an affine map down."""
    out: Tensor = _Mlp.apply(x, *up, *down)  # type: ignore[no-untyped-call]
    return out
