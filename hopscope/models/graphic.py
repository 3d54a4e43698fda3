"""What `operations` computes in C on a CPU, on a GPU, by kernels in Triton.

All tensors are contiguous, of one precision and on the same GPU, and fit together
(`kernels.suit…` says what does); in front may stand a fleet's model axis.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear

from hopscope.models.operations import AffineGradients, NormGradients

NUMBERS = 4096
"""Numbers of a matrix that a program holds at once."""
SHARED = 2**16
"""Bytes in which the operands of attention's products must have room: a multiprocessor shares more
(99 KiB the smallest that multiply bf16), of which Triton needs some for itself.
"""
PROGRAMS = 256
"""Among so many programs the rows of a sum are shared out, about two for each multiprocessor."""


def fits(seq: int, width: int) -> bool:
    """Is there room for attention between so many positions, in heads of this width?"""
    long, wide = _block(seq), _block(width)
    # Queries, keys, values and gradient; weights and their gradient; bf16.
    return 2 * (4 * long * wide + 2 * long * long) <= SHARED


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b at every position."""
    if weight.ndim == 2:
        return linear(x, weight, bias)
    rows = torch.baddbmm(bias[:, None], x.flatten(-3, -2), weight.mT)
    y: Tensor = rows.unflatten(-2, x.shape[-3:-1])
    return y


def affine_back(x: Tensor, weight: Tensor, gradient: Tensor) -> AffineGradients:
    """From the gradient of y = W x + b."""
    of_x, of_weight = _input_gradient(weight, gradient), _weight_gradient(x, weight, gradient)
    return AffineGradients(of_x, of_weight, _sum_rows(gradient, weight.shape[:-2]))


def mlp(x: Tensor, up: tuple[Tensor, Tensor], down: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Up, GELU, down; and what GELU got."""
    hidden = affine(x, *up)
    return affine(gelu(hidden), *down), hidden


def mlp_back(
    x: Tensor, hidden: Tensor, up: Tensor, down: Tensor, gradient: Tensor
) -> tuple[AffineGradients, tuple[Tensor, Tensor]]:
    """The gradients of the map up, and of the weight and bias of the map down; `hidden` is what
    GELU got.
    """
    y, of_hidden, of_bias = _gelu_back(hidden, _input_gradient(down, gradient), up.shape[:-2])
    of_down = _weight_gradient(y, down, gradient), _sum_rows(gradient, down.shape[:-2])
    of_x, of_up = _input_gradient(up, of_hidden), _weight_gradient(x, up, of_hidden)
    return AffineGradients(of_x, of_up, of_bias), of_down


def norm(x: Tensor, gain: Tensor, shift: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Layer normalisation with gain and shift; and mean and inverse deviation of each row."""
    y = torch.empty_like(x)
    statistics = torch.empty(*x.shape[:-1], 2, dtype=torch.float32, device=x.device)
    models, rows, width = _sizes(x, gain.shape[:-1])
    tall, wide = _tile(width)
    _launch(
        "norm", (-(-rows // tall), models),
        x, gain, shift, y, statistics, rows, width, epsilon, ROWS=tall, WIDTH=wide
    )  # fmt: skip
    return y, statistics


def norm_back(x: Tensor, gain: Tensor, statistics: Tensor, gradient: Tensor) -> NormGradients:
    """From the gradient of y = norm(x)."""
    models, rows, width = _sizes(x, gain.shape[:-1])
    tall, wide = _tile(width)
    programs, tiles = _shared(rows, tall, models)
    of_x = torch.empty_like(x)
    sums = torch.empty(models, programs, 2 * width, dtype=torch.float32, device=x.device)
    _launch(
        "norm_back", (programs, models),
        x, gain, statistics, gradient, of_x, sums, rows, width, TILES=tiles, ROWS=tall, WIDTH=wide
    )  # fmt: skip
    of_gain, of_shift = _total(sums, gain.dtype, gain.shape[:-1]).chunk(2, -1)
    return NormGradients(of_x, of_gain, of_shift)


def attend(joined: Tensor, query: Tensor | None, heads: int, causal: bool) -> tuple[Tensor, Tensor]:
    """What heads bring; and the logarithm of the sum of each softmax."""
    asked, width = _asked(joined, query)
    out = asked.new_empty(*asked.shape[:-1], width)
    logsum = torch.empty(
        *asked.shape[:-2], heads, asked.shape[-2], dtype=torch.float32, device=asked.device
    )
    programs, sizes, blocks = _attention(joined, asked, width, heads, causal)
    _launch("attend", (programs,), asked, joined, out, logsum, *sizes, **blocks)
    return out, logsum


def attend_back(
    joined: Tensor, query: Tensor | None, logsum: Tensor, causal: bool, gradient: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The gradients of `joined` and `query`; the softmax was not kept, and is computed again from
    the log-sum of each row.
    """
    asked, width = _asked(joined, query)
    of_joined = torch.empty_like(joined)
    of_query = None if query is None else torch.empty_like(query)
    programs, sizes, blocks = _attention(joined, asked, width, logsum.shape[-2], causal)
    _launch(
        "attend_back", (programs,),
        asked, joined, logsum, gradient, of_joined if of_query is None else of_query, of_joined,
        *sizes, **blocks,
    )  # fmt: skip
    return of_joined, of_query


def _launch(kernel: str, programs: tuple[int, ...], *given: Any, **sizes: int | bool) -> None:
    """Start a kernel on the device of its first tensor: Triton takes the current one."""
    from hopscope.models import triton_kernels

    with torch.cuda.device_of(given[0]):
        getattr(triton_kernels, kernel)[programs](*given, **sizes)


def _asked(joined: Tensor, query: Tensor | None) -> tuple[Tensor, int]:
    """Where queries lie, and the width of all heads."""
    return (joined, joined.shape[-1] // 3) if query is None else (query, query.shape[-1])


def _attention(
    joined: Tensor, asked: Tensor, width: int, heads: int, causal: bool
) -> tuple[int, tuple[int | float, ...], dict[str, int | bool]]:
    """How many programs, and what each is told: the sizes, and those of its blocks."""
    read, seq, each = asked.shape[-2], joined.shape[-2], width // heads
    sizes = heads, read, seq, each, each**-0.5, asked.shape[-1], joined.shape[-1]
    blocks = {"READ": _block(read), "SEQ": _block(seq), "WIDTH": _block(each)}
    return asked.shape[:-2].numel() * heads, sizes, {"causal": causal, **blocks}


def _input_gradient(weight: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the input of y = W x + b."""
    rows = gradient.flatten(-3, -2)
    if weight.ndim == 2:
        rows = rows.flatten(0, -2)
    return (rows @ weight).view(*gradient.shape[:-1], weight.shape[-1])


def _weight_gradient(x: Tensor, weight: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the weight of y = W x + b."""
    rows, back = x.flatten(-3, -2), gradient.flatten(-3, -2)
    if weight.ndim == 2:
        rows, back = rows.flatten(0, -2), back.flatten(0, -2)
    return back.mT @ rows


def _sum_rows(x: Tensor, fleet: torch.Size) -> Tensor:
    """The sum of all positions, of each model."""
    models, rows, width = _sizes(x, fleet)
    tall, wide = _part(width)
    programs, tiles = _shared(rows, tall, models)
    sums = torch.empty(models, programs, width, dtype=torch.float32, device=x.device)
    _launch(
        "sum_rows", (programs, -(-width // wide), models),
        x, sums, rows, width, TILES=tiles, ROWS=tall, WIDTH=wide
    )  # fmt: skip
    return _total(sums, x.dtype, fleet)


def _gelu_back(x: Tensor, gradient: Tensor, fleet: torch.Size) -> tuple[Tensor, Tensor, Tensor]:
    """GELU(x), and from its gradient that of x; and the sum of that over all positions, of each
    model.
    """
    models, rows, width = _sizes(x, fleet)
    tall, wide = _part(width)
    programs, tiles = _shared(rows, tall, models)
    y, of_x = torch.empty_like(x), torch.empty_like(x)
    sums = torch.empty(models, programs, width, dtype=torch.float32, device=x.device)
    _launch(
        "gelu_back", (programs, -(-width // wide), models),
        x, gradient, y, of_x, sums, rows, width, TILES=tiles, ROWS=tall, WIDTH=wide
    )  # fmt: skip
    return y, of_x, _total(sums, x.dtype, fleet)


def _total(sums: Tensor, dtype: torch.dtype, fleet: torch.Size) -> Tensor:
    """The sum of what programs have summed, of each model."""
    models, programs, width = sums.shape
    out = torch.empty(*fleet, width, dtype=dtype, device=sums.device)
    tall = _block(programs)
    wide = max(16, NUMBERS // tall)
    _launch(
        "total", (-(-width // wide), models),
        sums, out, programs, width, ROWS=tall, WIDTH=wide
    )  # fmt: skip
    return out


def _sizes(x: Tensor, fleet: torch.Size) -> tuple[int, int, int]:
    """How many models, rows of each, and numbers in a row."""
    models, width = fleet.numel(), x.shape[-1]
    return models, x.numel() // (models * width), width


def _block(size: int) -> int:
    """A power of two that holds so many, at least as many as a matrix product takes."""
    return max(16, 1 << (size - 1).bit_length())


def _tile(width: int) -> tuple[int, int]:
    """Rows and columns of a tile of whole rows."""
    wide = _block(width)
    return max(1, NUMBERS // wide), wide


def _part(width: int) -> tuple[int, int]:
    """Rows and columns of a tile, of rows that may be longer."""
    return _tile(min(width, 128))


def _shared(rows: int, tall: int, models: int) -> tuple[int, int]:
    """Among how many programs the tiles of each model are shared out, and how many each gets."""
    tiles = -(-rows // tall)
    each = -(-tiles * models // PROGRAMS)
    return -(-tiles // each), each
