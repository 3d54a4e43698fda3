"""Attention, norm and GELU of bf16 numbers on a CPU, in C: `kernels.c`, compiled at installation.

What they replace stands in `layers.py`, runs wherever these do not (float32, a GPU, a processor
without AVX-512 BF16, an installation without a C compiler), and is what the tests hold them to.
They are twice as fast at the shapes of the papers, since no attention weight leaves the cache,
and a little more exact, since all that is summed is float32.
"""

import ctypes
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import BFloat16
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

LANES, LONGEST, WIDEST, CHUNKS = 16, 128, 128, 32  # as in kernels.c


class _AttentionTask(ctypes.Structure):
    """`Attention` of kernels.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("batch", "heads", "read", "seq", "width", "causal")),
        ("query_row", ctypes.c_long),
        ("key_row", ctypes.c_long),
        ("scale", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("query", "key", "value", "out", "logsum")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("out", "query", "key", "value")),
    )


class _AffineTask(ctypes.Structure):
    """`Affine` of kernels.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("models", "ins", "outs")),
        ("rows", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("x", "y_gradient")),
        *((f"{name}_gradient", ctypes.c_void_p) for name in ("weight", "bias")),
    )


class _NormTask(ctypes.Structure):
    """`Norm` of kernels.c."""

    _fields_ = (
        ("models", ctypes.c_int),
        ("width", ctypes.c_int),
        ("rows", ctypes.c_long),
        ("epsilon", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("x", "gain", "shift", "y", "statistics")),
        *((name, ctypes.c_void_p) for name in ("y_gradient", "x_gradient", "partial")),
    )


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None where there are none or the processor cannot run them."""
    compiled = find_spec("hopscope.models._kernels")
    # torch's own query, which has no public name.
    if compiled is None or not torch.cpu._is_avx512_bf16_supported():  # noqa: SLF001
        return None
    return ctypes.CDLL(compiled.origin)


def suit(x: Tensor) -> bool:
    """Whether norm and GELU can be computed here."""
    plain = x.dtype == torch.bfloat16 and x.device.type == "cpu" and x.shape[-1] % LANES == 0
    return plain and library() is not None


def suit_affine(x: Tensor, weight: Tensor) -> bool:
    """Whether an affine map with these weights can be computed here."""
    return weight.shape[-1] % 64 == 0 and weight.shape[-2] % 64 == 0 and suit(x)


def suit_attention(x: Tensor, width: int) -> bool:
    """Whether attention between these positions, with heads of this width, can be computed here."""
    small = x.shape[-2] <= LONGEST and width <= WIDEST and width % LANES == 0
    return small and suit(x)


class _Attend(Function):
    """The softmax is not kept: the backward pass computes it again, from each row's log-sum."""

    @staticmethod
    def forward(
        ctx: Any, joined: Tensor, query: Tensor | None, heads: int, causal: bool
    ) -> Tensor:
        joined = joined.contiguous()
        asked = joined if query is None else query.contiguous()
        width = joined.shape[-1] // (3 if query is None else 2)
        out = asked.new_empty(*asked.shape[:-1], width)
        logsum = torch.empty(*asked.shape[:-2], heads, asked.shape[-2])
        ctx.task = _AttentionTask(
            batch=asked.shape[:-2].numel(), heads=heads, read=asked.shape[-2],
            seq=joined.shape[-2], width=width // heads, causal=causal,
            query_row=asked.shape[-1], key_row=joined.shape[-1], scale=(width // heads) ** -0.5,
            out=out.data_ptr(), logsum=logsum.data_ptr(),
        )  # fmt: skip
        _point(ctx.task, "", joined, query, width)
        _run("attend", ctx.task)
        ctx.save_for_backward(joined, query, logsum)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradient.contiguous()
        joined, query, _ = ctx.saved_tensors
        joined_gradient = torch.empty_like(joined)
        query_gradient = None if query is None else torch.empty_like(query)
        ctx.task.out_gradient = gradient.data_ptr()
        _point(ctx.task, "_gradient", joined_gradient, query_gradient, gradient.shape[-1])
        _run("attend_back", ctx.task)
        return joined_gradient, query_gradient, None, None


def _point(
    task: _AttentionTask, what: str, joined: Tensor, query: Tensor | None, width: int
) -> None:
    """Tell the task where queries, keys and values begin (or their gradients)."""
    value = joined.data_ptr() + (joined.shape[-1] - width) * joined.element_size()
    key = value - width * joined.element_size()
    setattr(task, f"query{what}", (joined if query is None else query).data_ptr())
    setattr(task, f"key{what}", key)
    setattr(task, f"value{what}", value)


class _Affine(Function):
    """torch's product of a transposed bf16 matrix copies it first; ours sums over rows as they lie."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows = x.flatten(-3, -2).contiguous()
        ctx.save_for_backward(rows, weight)
        if weight.ndim == 2:
            y = torch.addmm(bias, rows, weight.mT)
        else:
            y = torch.baddbmm(bias[:, None], rows, weight.mT)
        return y.unflatten(-2, x.shape[-3:-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        rows, weight = ctx.saved_tensors
        folded = gradient.flatten(-3, -2).contiguous()
        weight_gradient, bias_gradient = torch.empty_like(weight), weight.new_empty(weight.shape[:-1])
        task = _AffineTask(
            models=weight.shape[:-2].numel(), ins=weight.shape[-1], outs=weight.shape[-2],
            rows=rows.shape[-2],
            **_places(
                x=rows, y_gradient=folded, weight_gradient=weight_gradient,
                bias_gradient=bias_gradient,
            ),
        )  # fmt: skip
        _run("affine_back", task)
        x_gradient = (folded @ weight).unflatten(-2, gradient.shape[-3:-1])
        return x_gradient, weight_gradient, bias_gradient


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> Tensor:
        x, gain, shift = x.contiguous(), gain.contiguous(), shift.contiguous()
        y = torch.empty_like(x)
        statistics = torch.empty(*x.shape[:-1], 2)
        models, width = gain.numel() // x.shape[-1], x.shape[-1]
        ctx.task = _NormTask(
            models=models, width=width, rows=x.numel() // (models * width), epsilon=epsilon,
            **_places(x=x, gain=gain, shift=shift, y=y, statistics=statistics),
        )  # fmt: skip
        _run("norm", ctx.task)
        ctx.save_for_backward(x, gain, statistics)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradient.contiguous()
        x, gain, _ = ctx.saved_tensors
        x_gradient = torch.empty_like(x)
        partial = torch.empty(ctx.task.models, CHUNKS, 2, x.shape[-1])
        ctx.task.y_gradient, ctx.task.x_gradient = gradient.data_ptr(), x_gradient.data_ptr()
        ctx.task.partial = partial.data_ptr()
        _run("norm_back", ctx.task)
        gains, shifts = partial.sum(1).to(x.dtype).unbind(1)
        return x_gradient, gains.view_as(gain), shifts.view_as(gain), None


class _Gelu(Function):
    """The slope is computed beside the value, which it shares its exponential with, and kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        y, slope = torch.empty_like(x), torch.empty_like(x)
        kernels = library()
        assert kernels is not None
        kernels.hopscope_gelu(
            ctypes.c_long(x.numel()), *(ctypes.c_void_p(t.data_ptr()) for t in (x, y, slope))
        )
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradient * slope


def affine(
    x: BFloat16[Tensor, "*model batch seq inputs"],
    weight: BFloat16[Tensor, "*model outputs inputs"],
    bias: BFloat16[Tensor, "*model outputs"],
) -> BFloat16[Tensor, "*model batch seq outputs"]:
    """x Wᵀ + b."""
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


def gelu(x: BFloat16[Tensor, "*model batch seq width"]) -> BFloat16[Tensor, "*model batch seq width"]:
    """x times the share of a standard normal distribution that lies below x."""
    out: Tensor = _Gelu.apply(x)  # type: ignore[no-untyped-call]
    return out


def _places(**tensors: Tensor) -> dict[str, int]:
    return {name: tensor.data_ptr() for name, tensor in tensors.items()}


def _run(name: str, task: ctypes.Structure) -> None:
    kernels = library()
    assert kernels is not None
    getattr(kernels, f"hopscope_{name}")(ctypes.byref(task))
