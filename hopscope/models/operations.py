"""What `native/` computes, forward and back, called with tensors. Autograd knows nothing of it.

All tensors are contiguous, bf16 and on the CPU, and fit together (`kernels.suit…` says what does);
in front may stand a fleet's model axis.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from hopscope.models import compiled
from hopscope.models.compiled import AffineTask, AttentionTask, MlpTask, NormTask, places, run


class AffineGradients(NamedTuple):
    """The gradients of an affine map's input, weight and bias."""

    x: Tensor
    weight: Tensor
    bias: Tensor


class NormGradients(NamedTuple):
    """The gradients of a norm's input, gain and shift."""

    x: Tensor
    gain: Tensor
    shift: Tensor


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b at every position."""
    y = x.new_empty(*x.shape[:-1], weight.shape[-2])
    run("affine", _mapping(x, weight, bias=bias, y=y))
    return y


def affine_back(x: Tensor, weight: Tensor, gradient: Tensor) -> AffineGradients:
    """From the gradient of y = W x + b."""
    to = AffineGradients(torch.empty_like(x), *_room(weight))
    run("affine_back", _mapping_back(x, weight, *to[1:], x_gradient=to.x, y_gradient=gradient))
    return to


def mlp(x: Tensor, up: tuple[Tensor, Tensor], down: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Up, GELU, down; and what GELU got.

    Of the hidden layer, the largest tensor of a step, only that is kept: to compute the rest again
    takes as long as to fetch it, and half the memory.
    """
    hidden = x.new_empty(*x.shape[:-1], up[0].shape[-2])
    y = torch.empty_like(x)
    task = MlpTask(
        _mapping(x, up[0], bias=up[1], y=hidden),
        _mapping(hidden, down[0], bias=down[1], y=y),
    )
    run("mlp", task)
    return y, hidden


def mlp_back(
    x: Tensor, hidden: Tensor, up: Tensor, down: Tensor, gradient: Tensor
) -> tuple[AffineGradients, tuple[Tensor, Tensor]]:
    """The gradients of the map up, and of the weight and bias of the map down; `hidden` is what
    GELU got.
    """
    of_up, of_down = AffineGradients(torch.empty_like(x), *_room(up)), _room(down)
    task = MlpTask(
        _mapping_back(x, up, *of_up[1:], x_gradient=of_up.x, y=hidden),
        _mapping_back(hidden, down, *of_down, y_gradient=gradient),
    )
    run("mlp_back", task)
    return of_up, of_down


def _room(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Empty tensors for the gradients of weight and bias."""
    return torch.empty_like(weight), weight.new_empty(weight.shape[:-1])


def _mapping(x: Tensor, weight: Tensor, **others: Tensor | None) -> AffineTask:
    """An affine map of all positions, each model of a fleet with its own weights.

    It holds places, and not tensors: these must outlive it.
    """
    models, ins = weight.shape[:-2].numel(), weight.shape[-1]
    return AffineTask(
        models=models, ins=ins, outs=weight.shape[-2], tiles=compiled.path() == "amx",
        rows=x.numel() // (models * ins), **places(x=x, weight=weight, **others),
    )  # fmt: skip


def _mapping_back(
    x: Tensor, weight: Tensor, of_weight: Tensor, of_bias: Tensor, **others: Tensor
) -> AffineTask:
    return _mapping(x, weight, weight_gradient=of_weight, bias_gradient=of_bias, **others)


def norm(x: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Layer normalisation with gain and shift; and mean and inverse deviation of each row."""
    y, statistics = torch.empty_like(x), _sums(*x.shape[:-1], 2)
    task = _norming(x, gain, shift=shift, y=y, statistics=statistics)
    task.epsilon = epsilon
    run("norm", task)
    return y, statistics


def norm_back(x: Tensor, gain: Tensor, statistics: Tensor, gradient: Tensor) -> NormGradients:
    """From the gradient of y = norm(x)."""
    to = NormGradients(torch.empty_like(x), torch.empty_like(gain), torch.empty_like(gain))
    task = _norming(
        x, gain, statistics=statistics, y_gradient=gradient, x_gradient=to.x,
        gain_gradient=to.gain, shift_gradient=to.shift,
    )  # fmt: skip
    run("norm_back", task)
    return to


def _norming(x: Tensor, gain: Tensor, **others: Tensor | None) -> NormTask:
    models, width = gain.shape[:-1].numel(), x.shape[-1]
    rows = x.numel() // (models * width)
    return NormTask(models=models, width=width, rows=rows, **places(x=x, gain=gain, **others))


def attend(joined: Tensor, query: Tensor | None, heads: int, causal: bool) -> tuple[Tensor, Tensor]:
    """What heads bring; and the logarithm of the sum of each softmax."""
    asked, width = _asked(joined, query)
    out = asked.new_empty(*asked.shape[:-1], width)
    logsum = _sums(*asked.shape[:-2], heads, asked.shape[-2])
    task = _attention(joined, query, heads, causal)
    task.out, task.logsum = out.data_ptr(), logsum.data_ptr()
    run("attend", task)
    return out, logsum


def attend_back(
    joined: Tensor, query: Tensor | None, logsum: Tensor, causal: bool, gradient: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The gradients of `joined` and `query`; the softmax was not kept, and is computed again from
    the log-sum of each row.
    """
    joined_gradient = torch.empty_like(joined)
    query_gradient = None if query is None else torch.empty_like(query)
    task = _attention(joined, query, logsum.shape[-2], causal)
    task.out_gradient, task.logsum = gradient.data_ptr(), logsum.data_ptr()
    _point(task, "_gradient", joined_gradient, query_gradient, gradient.shape[-1])
    run("attend_back", task)
    return joined_gradient, query_gradient


def _sums(*shape: int) -> Tensor:
    """Room for float32 numbers, whatever the user's defaults are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def _asked(joined: Tensor, query: Tensor | None) -> tuple[Tensor, int]:
    """Where queries lie, and the width of all heads."""
    return (joined, joined.shape[-1] // 3) if query is None else (query, query.shape[-1])


def _attention(joined: Tensor, query: Tensor | None, heads: int, causal: bool) -> AttentionTask:
    """Attention over these inputs, which must outlive it."""
    asked, width = _asked(joined, query)
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
