"""Attention, affine maps, norm and MLP of bf16 numbers on a CPU, in C (`native/`).

What they replace stands in `layers.py`, runs wherever these do not (float32, a GPU, a processor
without AVX-512 BF16, an installation without a C compiler; `compiled.path()` says which way is
taken), and is what the tests hold them to.
A training step takes two thirds of its time with them: weights are laid out as the processor's
instruction wants them, no attention weight leaves the cache, and no matrix is transposed in memory.
Gradients are more exact, since all that is summed is float32.
"""

from typing import Any

import torch
from jaxtyping import BFloat16
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from hopscope.models import compiled
from hopscope.models.compiled import (
    AffineTask,
    AttentionTask,
    MlpTask,
    NormTask,
    places,
    run,
)


def suit(*tensors: Tensor) -> bool:
    """Whether numbers like these can be computed with here; what fits together, the others say."""
    return compiled.path() != "torch" and all(
        x.dtype == torch.bfloat16 and x.device.type == "cpu" and x.shape[-1] % compiled.LANES == 0
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
    fits = down[0].shape == up[0].mT.shape and down[1].shape == down[0].shape[:-1]
    return fits and suit(*down) and suit_affine(x, *up)


def suit_attention(x: Tensor, width: int) -> bool:
    """Whether attention between these positions, with heads of this width, can be computed here."""
    small = x.shape[-2] <= compiled.LONGEST and width <= compiled.WIDEST
    return small and width % compiled.LANES == 0 and suit(x)


class _Attend(Function):
    """The softmax is not kept: the backward pass computes it again, from each row's log-sum."""

    @staticmethod
    def forward(ctx: Any, joined: Tensor, query: Tensor | None, heads: int, causal: bool) -> Tensor:
        joined = joined.contiguous()
        query = None if query is None else query.contiguous()
        asked, width = (
            (joined, joined.shape[-1] // 3) if query is None else (query, query.shape[-1])
        )
        out = asked.new_empty(*asked.shape[:-1], width)
        logsum = _sums(*asked.shape[:-2], heads, asked.shape[-2])
        task = _attention(joined, query, heads, causal)
        task.out, task.logsum = out.data_ptr(), logsum.data_ptr()
        run("attend", task)
        ctx.heads, ctx.causal = heads, causal
        ctx.save_for_backward(joined, query, logsum)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradient.contiguous()
        joined, query, logsum = ctx.saved_tensors
        joined_gradient = torch.empty_like(joined)
        query_gradient = None if query is None else torch.empty_like(query)
        task = _attention(joined, query, ctx.heads, ctx.causal)
        task.out_gradient, task.logsum = gradient.data_ptr(), logsum.data_ptr()
        _point(task, "_gradient", joined_gradient, query_gradient, gradient.shape[-1])
        run("attend_back", task)
        return joined_gradient, query_gradient, None, None


def _sums(*shape: int) -> Tensor:
    """Room for float32 numbers, whatever the user's defaults are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def _attention(joined: Tensor, query: Tensor | None, heads: int, causal: bool) -> AttentionTask:
    """Attention over these inputs, which must outlive it."""
    asked, width = (joined, joined.shape[-1] // 3) if query is None else (query, query.shape[-1])
    task = AttentionTask(
        batch=asked.shape[:-2].numel(), heads=heads, read=asked.shape[-2],
        seq=joined.shape[-2], width=width // heads, causal=causal, tiles=compiled.path() == "amx",
        query_row=asked.shape[-1], key_row=joined.shape[-1], scale=(width // heads) ** -0.5,
    )  # fmt: skip
    _point(task, "", joined, query, width)
    return task


def _point(
    task: AttentionTask, what: str, joined: Tensor, query: Tensor | None, width: int
) -> None:
    """Tell the task where queries, keys and values begin (or their gradients)."""
    value = joined.data_ptr() + (joined.shape[-1] - width) * joined.element_size()
    key = value - width * joined.element_size()
    setattr(task, f"query{what}", (joined if query is None else query).data_ptr())
    setattr(task, f"key{what}", key)
    setattr(task, f"value{what}", value)


class _Affine(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows, weight, bias = _folded(x), weight.contiguous(), bias.contiguous()
        ctx.save_for_backward(rows, weight)
        y, packed = x.new_empty(*x.shape[:-1], weight.shape[-2]), torch.empty_like(weight)
        run("affine", _mapping(rows, weight, bias=bias, y=y, packed=packed))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        rows, weight = ctx.saved_tensors
        folded, of = _folded(gradient), _Gradients(rows, weight)
        run("affine_back", of.task(rows, weight, folded))
        return _unfolded(of.x, gradient), of.weight, of.bias


class _Mlp(Function):
    """Of the hidden layer, the largest tensor of a step, only what GELU got is kept.

    To compute the rest again takes as long as to fetch it, and half the memory.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor
    ) -> Tensor:
        rows, up, down = _folded(x), up.contiguous(), down.contiguous()
        hidden = rows.new_empty(*rows.shape[:-1], up.shape[-2])
        active = x.new_empty(torch.get_num_threads() * compiled.BLOCK, up.shape[-2])
        y = x.new_empty(x.shape)
        up_bias, down_bias = up_bias.contiguous(), down_bias.contiguous()
        packed, packed_down = torch.empty_like(up), torch.empty_like(down)
        task = MlpTask(
            _mapping(rows, up, bias=up_bias, y=hidden, packed=packed),
            _mapping(active, down, bias=down_bias, y=y, packed=packed_down),
        )
        task.down.rows = rows.shape[-2]
        run("mlp", task)
        ctx.save_for_backward(rows, hidden, up, down)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        rows, hidden, up, down = ctx.saved_tensors
        folded, active = _folded(gradient), torch.empty_like(hidden)
        of_up, of_down = _Gradients(rows, up), _Gradients(active, down)
        task = MlpTask(of_up.task(rows, up, of_down.x), of_down.task(active, down, folded))
        task.up.y = hidden.data_ptr()
        run("mlp_back", task)
        return _unfolded(of_up.x, gradient), of_up.weight, of_up.bias, of_down.weight, of_down.bias


def _folded(x: Tensor) -> Tensor:
    """All positions of all examples as rows."""
    return x.flatten(-3, -2).contiguous()


def _unfolded(rows: Tensor, like: Tensor) -> Tensor:
    """Rows as positions of the examples that `like` has."""
    out: Tensor = rows.unflatten(-2, like.shape[-3:-1])
    return out


def _mapping(x: Tensor, weight: Tensor, **others: Tensor) -> AffineTask:
    """An affine map of the rows of x, each model of a fleet with its own weights.

    It holds places, and not tensors: these must outlive it.
    """
    return AffineTask(
        models=weight.shape[:-2].numel(), ins=weight.shape[-1], outs=weight.shape[-2],
        tiles=compiled.path() == "amx", rows=x.shape[-2], **places(x=x, weight=weight, **others),
    )  # fmt: skip


class _Gradients:
    """Room for those of an affine map's input, weight and bias."""

    def __init__(self, x: Tensor, weight: Tensor) -> None:
        self.x, self.weight = torch.empty_like(x), torch.empty_like(weight)
        self.bias = weight.new_empty(weight.shape[:-1])
        self.packed = torch.empty_like(weight)

    def task(self, x: Tensor, weight: Tensor, gradient: Tensor) -> AffineTask:
        return _mapping(
            x, weight, y_gradient=gradient, x_gradient=self.x, weight_gradient=self.weight,
            bias_gradient=self.bias, packed=self.packed,
        )  # fmt: skip


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> Tensor:
        x, gain, shift = x.contiguous(), gain.contiguous(), shift.contiguous()
        y = torch.empty_like(x)
        statistics = _sums(*x.shape[:-1], 2)
        models, width = gain.numel() // x.shape[-1], x.shape[-1]
        ctx.task = NormTask(
            models=models, width=width, rows=x.numel() // (models * width), epsilon=epsilon,
            **places(x=x, gain=gain, shift=shift, y=y, statistics=statistics),
        )  # fmt: skip
        run("norm", ctx.task)
        ctx.save_for_backward(x, gain, statistics)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradient.contiguous()
        x, gain, statistics = ctx.saved_tensors
        x_gradient = torch.empty_like(x)
        partial = _sums(ctx.task.models, compiled.CHUNKS, 2, x.shape[-1])
        task = NormTask(
            ctx.task.models, ctx.task.width, ctx.task.rows, ctx.task.epsilon,
            **places(
                x=x, gain=gain, statistics=statistics, y_gradient=gradient, x_gradient=x_gradient,
                partial=partial,
            ),
        )  # fmt: skip
        run("norm_back", task)
        gains, shifts = partial.sum(1).to(x.dtype).unbind(1)
        return x_gradient, gains.view_as(gain), shifts.view_as(gain), None


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
    """Up, GELU, down."""
    out: Tensor = _Mlp.apply(x, *up, *down)  # type: ignore[no-untyped-call]
    return out
