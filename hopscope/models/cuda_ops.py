"""The sublayers of a block on a GPU: attention, norm, GELU's gradient and sums over rows in Triton,
matrix products in cuBLAS.

The tensors of a fleet have a model axis in front. Kernels treat every tensor as a matrix of rows
for each model. They sum in float32, and read and write the precision of their tensors. cuBLAS sums
in float32 too, but may round partial sums to bf16
(`torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import BFloat16, Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu

from hopscope.models import layers
from hopscope.models.layers import NORM_EPS, Attention, Mlp, Norm, last_positions

LANES = 16
"""The widths of rows and heads must be multiples of this."""
NUMBERS = 4096
"""How many elements of a matrix one program holds at a time."""
SHARED = 2**16
"""Bytes of shared memory for the operands of attention's products. A multiprocessor that can
multiply bf16 has more (at least 99 KiB), but Triton needs a part of it.
"""
PROGRAMS = 1024
"""How many programs share the rows of a sum: enough to use the full memory bandwidth of a GPU."""


@dataclass(frozen=True)
class CudaOps:
    """The sublayers of bf16 models on a GPU."""

    def longest(self, norm: nn.Module, attention: Attention) -> int:  # noqa: ARG002
        """The longest sequence whose attention these kernels can compute; 0: none."""
        if attention.width % LANES or attention.query.weight.shape[-1] % LANES:
            return 0
        return longest_for(attention.width)

    def supports_mlp(self, norm: nn.Module, mlp: Mlp) -> bool:  # noqa: ARG002
        """True if these kernels can compute an MLP sublayer of this shape."""
        return all(n % LANES == 0 for n in mlp.up.weight.shape[-2:])

    def attention(
        self,
        x: BFloat16[Tensor, "*model batch seq d_model"],
        norm: nn.Module,
        attention: Attention,
        read: int,
    ) -> BFloat16[Tensor, "*model batch read d_model"]:
        """The stream at the last `read` positions after the attention sublayer."""
        y, x = _normed(norm, x)
        packed_qkv, query = attention.packed(y, read, affine)
        mixed = attend(packed_qkv, query, attention.heads, attention.causal)
        return last_positions(x, read) + affine(mixed, *attention.out.pair)

    def mlp(
        self, x: BFloat16[Tensor, "*model batch seq d_model"], norm: nn.Module, mlp: Mlp
    ) -> BFloat16[Tensor, "*model batch seq d_model"]:
        """The stream at every position after the MLP sublayer."""
        y, x = _normed(norm, x)
        return x + up_and_down(y, *mlp.up.pair, *mlp.down.pair)


def longest_for(width: int) -> int:
    """The longest sequence whose attention fits into shared memory, for heads of this width."""
    wide, seq = _block(width), 128
    # Queries, keys, values and gradient; weights and their gradient; bf16.
    while seq and 2 * (4 * seq * wide + 2 * seq * seq) > SHARED:
        seq = seq // 2 if seq > LANES else 0
    return seq


def _normed(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The normalised input of a sublayer, and the stream to which its output is added."""
    return norm(x, *module.pair) if isinstance(module, Norm) else (x, x)


class _Affine(Function):
    """W x + b at every position."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "*model batch seq inputs"],
        weight: Float[Tensor, "*model outputs inputs"],
        bias: Float[Tensor, "*model outputs"],
    ) -> Float[Tensor, "*model batch seq outputs"]:
        x, weight = x.contiguous(), weight.contiguous()
        ctx.save_for_backward(x, weight)
        return layers.affine(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        (x, weight), gradient = ctx.saved_tensors, gradient.contiguous()
        of_x, of_weight = _input_gradient(weight, gradient), _weight_gradient(x, gradient)
        return of_x, of_weight, _sum_rows(gradient, weight.shape[:-2])


class _Mlp(Function):
    """An affine map up, GELU, an affine map down."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Float[Tensor, "*model batch seq d_model"]:
        x, up, up_bias, down, down_bias = (each.contiguous() for each in inputs)
        hidden = layers.affine(x, up, up_bias)
        active = gelu(hidden)
        ctx.save_for_backward(x, hidden, active, up, down)
        return layers.affine(active, down, down_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        (x, hidden, active, up, down), gradient = ctx.saved_tensors, gradient.contiguous()
        fleet = up.shape[:-2]
        of_hidden, of_bias = _gelu_backward(hidden, _input_gradient(down, gradient), fleet)
        of_up = _input_gradient(up, of_hidden), _weight_gradient(x, of_hidden), of_bias
        return *of_up, _weight_gradient(active, gradient), _sum_rows(gradient, fleet)


class _Norm(Function):
    """Layer normalisation with gain and shift. It also returns x, to which the sublayer's output is
    added later, so that one kernel adds both gradients of x.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "*model batch seq width"],
        gain: Float[Tensor, "*model width"],
        shift: Float[Tensor, "*model width"],
    ) -> tuple[Tensor, Tensor]:
        x, gain, shift = x.contiguous(), gain.contiguous(), shift.contiguous()
        y, statistics = torch.empty_like(x), _float32(x, *x.shape[:-1], 2)
        models, rows, width = _sizes(x, gain.shape[:-1])
        tall, wide = _tile_of(width)
        _launch(
            norm_forward, (-(-rows // tall), models),
            x, gain, shift, y, statistics, rows, width, NORM_EPS, ROWS=tall, WIDTH=wide
        )  # fmt: skip
        ctx.save_for_backward(x, gain, statistics)
        return y, x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, passed: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, statistics = ctx.saved_tensors
        gradient, passed = gradient.contiguous(), passed.contiguous()
        models, rows, width = _sizes(x, gain.shape[:-1])
        tall, wide = _tile_of(width)
        programs, tiles = _shared(rows, tall, models)
        of_x, sums = torch.empty_like(x), _float32(x, models, programs, 2 * width)
        _launch(
            norm_backward, (programs, models), x, gain, statistics, gradient, passed, of_x, sums,
            rows, width, TILES=tiles, ROWS=tall, WIDTH=wide
        )  # fmt: skip
        return of_x, *_total(sums, gain.dtype, gain.shape[:-1]).chunk(2, -1)


class _Attend(Function):
    """The outputs of all heads at the last `read` positions, concatenated in a row.

    A row of `packed_qkv` has the query, key and value of a position, or only key and value if
    `query` is given.
    """

    @staticmethod
    def forward(
        ctx: Any,
        packed_qkv: Float[Tensor, "*model batch seq packed"],
        query: Float[Tensor, "*model batch read width"] | None,
        heads: int,
        causal: bool,
    ) -> Float[Tensor, "*model batch read width"]:
        packed_qkv = packed_qkv.contiguous()
        query = None if query is None else query.contiguous()
        queries, width = _queries(packed_qkv, query)
        out = queries.new_empty(*queries.shape[:-1], width)
        logsum = _float32(queries, *queries.shape[:-2], heads, queries.shape[-2])
        programs, sizes, blocks = _attention(packed_qkv, queries, width, heads, causal)
        _launch(attend_forward, programs, queries, packed_qkv, out, logsum, *sizes, **blocks)
        ctx.causal = causal
        ctx.save_for_backward(packed_qkv, query, logsum)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients; the softmax is computed again from the saved log-sum of each row."""
        (packed_qkv, query, logsum), gradient = ctx.saved_tensors, gradient.contiguous()
        queries, width = _queries(packed_qkv, query)
        of_packed = torch.empty_like(packed_qkv)
        of_query = None if query is None else torch.empty_like(query)
        heads = logsum.shape[-2]
        programs, sizes, blocks = _attention(packed_qkv, queries, width, heads, ctx.causal)
        of_queries = of_packed if of_query is None else of_query
        _launch(
            attend_backward, programs, queries, packed_qkv, logsum, gradient, of_queries, of_packed,
            *sizes, **blocks,
        )  # fmt: skip
        return of_packed, of_query, None, None


affine: Callable[..., Tensor] = _Affine.apply
up_and_down: Callable[..., Tensor] = _Mlp.apply
norm: Callable[..., tuple[Tensor, Tensor]] = _Norm.apply
attend: Callable[..., Tensor] = _Attend.apply


def _launch(kernel: Any, programs: tuple[int, ...], *given: Any, **sizes: int | bool) -> None:
    """Start a kernel on the device of its first tensor (Triton would use the current device)."""
    with torch.cuda.device_of(given[0]):
        kernel[programs](*given, **sizes)


def _float32(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def _queries(packed_qkv: Tensor, query: Tensor | None) -> tuple[Tensor, int]:
    """The tensor that contains the queries, and the width of all heads together."""
    return (packed_qkv, packed_qkv.shape[-1] // 3) if query is None else (query, query.shape[-1])


def _attention(
    packed_qkv: Tensor, queries: Tensor, width: int, heads: int, causal: bool
) -> tuple[tuple[int], tuple[int | float, ...], dict[str, int | bool]]:
    """The number of programs, the sizes that they get as arguments, and their block sizes."""
    read, seq, each = queries.shape[-2], packed_qkv.shape[-2], width // heads
    sizes = heads, read, seq, each, each**-0.5, queries.shape[-1], packed_qkv.shape[-1]
    blocks = {"READ": _block(read), "SEQ": _block(seq), "WIDTH": _block(each)}
    return (queries.shape[:-2].numel() * heads,), sizes, {"causal": causal, **blocks}


def _input_gradient(weight: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the input of y = W x + b."""
    rows: Tensor = gradient.flatten(-3, -2) @ weight
    return rows.view(*gradient.shape[:-1], weight.shape[-1])


def _weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the weight of y = W x + b."""
    return gradient.flatten(-3, -2).mT @ x.flatten(-3, -2)


def _sum_rows(x: Tensor, fleet: torch.Size) -> Tensor:
    """The sum over all positions, for each model."""
    return _sums(sum_tiles, x, fleet)


def _gelu_backward(x: Tensor, gradient: Tensor, fleet: torch.Size) -> tuple[Tensor, Tensor]:
    """The gradient of x, from that of GELU(x), and its sum over all positions for each model."""
    of_x = torch.empty_like(x)
    return of_x, _sums(gelu_backward, x, fleet, gradient, of_x)


def _sums(kernel: Any, x: Tensor, fleet: torch.Size, *others: Tensor) -> Tensor:
    """The sums that a kernel computes over all positions of each model, in tiles of at most 128
    columns.
    """
    models, rows, width = _sizes(x, fleet)
    tall, wide = _tile_of(min(width, 128))
    programs, tiles = _shared(rows, tall, models)
    sums = _float32(x, models, programs, width)
    _launch(
        kernel, (programs, -(-width // wide), models),
        x, *others, sums, rows, width, TILES=tiles, ROWS=tall, WIDTH=wide
    )  # fmt: skip
    return _total(sums, x.dtype, fleet)


def _total(sums: Tensor, dtype: torch.dtype, fleet: torch.Size) -> Tensor:
    """The sum over all programs, for each model, in the given precision."""
    models, programs, width = sums.shape
    out = torch.empty(*fleet, width, dtype=dtype, device=sums.device)
    tall = _block(programs)
    wide = max(16, NUMBERS // tall)
    _launch(
        sum_programs, (-(-width // wide), models),
        sums, out, programs, width, ROWS=tall, WIDTH=wide
    )  # fmt: skip
    return out


def _sizes(x: Tensor, fleet: torch.Size) -> tuple[int, int, int]:
    """The number of models, of rows of each model, and of numbers in a row."""
    models, width = fleet.numel(), x.shape[-1]
    return models, x.numel() // (models * width), width


def _block(size: int) -> int:
    """The next power of two, but at least 16, the smallest size of a matrix product."""
    return max(16, 1 << (size - 1).bit_length())


def _tile_of(width: int) -> tuple[int, int]:
    """Rows and columns of a tile that holds whole rows."""
    wide = _block(width)
    return max(1, NUMBERS // wide), wide


def _shared(rows: int, tall: int, models: int) -> tuple[int, int]:
    """The number of programs that share the tiles of a model, and the tiles of each program."""
    tiles = -(-rows // tall)
    each = -(-tiles * models // PROGRAMS)
    return -(-tiles // each), each


@triton.jit
def attend_forward(
    query, packed_qkv, out, logsum, heads, read, seq, width, scale,
    query_row, key_row, causal: tl.constexpr,
    READ: tl.constexpr, SEQ: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The output of one head, in one example, at the last `read` positions."""
    example, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    row, column = tl.arange(0, READ), tl.arange(0, SEQ)
    q = _rows(query, example * read, query_row, head * width, read, width, READ, WIDTH)
    key = key_row - 2 * heads * width + head * width
    k = _rows(packed_qkv, example * seq, key_row, key, seq, width, SEQ, WIDTH)
    v = _rows(packed_qkv, example * seq, key_row, key + heads * width, seq, width, SEQ, WIDTH)
    scores = _scores(q, k, row, column, read, seq, scale, causal)
    most = tl.max(scores, 1)
    weights = tl.exp(scores - most[:, None])
    total = tl.sum(weights, 1)
    weights = weights / total[:, None]
    brought = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    _store(out, brought, example * read, heads * width, head * width, read, width, READ, WIDTH)
    tl.store(logsum + tl.program_id(0) * read + row, most + tl.log(total), mask=row < read)


@triton.jit
def attend_backward(
    query, packed_qkv, logsum, gradient, query_gradient, packed_gradient, heads, read, seq, width,
    scale, query_row, key_row, causal: tl.constexpr,
    READ: tl.constexpr, SEQ: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradients of one head of one example; the softmax is computed again from its log-sums."""
    example, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    row, column = tl.arange(0, READ), tl.arange(0, SEQ)
    q = _rows(query, example * read, query_row, head * width, read, width, READ, WIDTH)
    key = key_row - 2 * heads * width + head * width
    value = key + heads * width
    k = _rows(packed_qkv, example * seq, key_row, key, seq, width, SEQ, WIDTH)
    v = _rows(packed_qkv, example * seq, key_row, value, seq, width, SEQ, WIDTH)
    g = _rows(gradient, example * read, heads * width, head * width, read, width, READ, WIDTH)
    scores = _scores(q, k, row, column, read, seq, scale, causal)
    sums = tl.load(logsum + tl.program_id(0) * read + row, mask=row < read, other=float("inf"))
    weights = tl.exp(scores - sums[:, None])
    of_weights = tl.dot(g, tl.trans(v), input_precision="ieee")
    inner = tl.sum(weights * of_weights, 1)
    of_scores = (weights * (of_weights - inner[:, None]) * scale).to(q.dtype)
    of_v = tl.dot(tl.trans(weights.to(g.dtype)), g, input_precision="ieee")
    of_k = tl.dot(tl.trans(of_scores), q, input_precision="ieee")
    of_q = tl.dot(of_scores, k, input_precision="ieee")
    _store(query_gradient, of_q, example * read, query_row, head * width, read, width, READ, WIDTH)
    _store(packed_gradient, of_k, example * seq, key_row, key, seq, width, SEQ, WIDTH)
    _store(packed_gradient, of_v, example * seq, key_row, value, seq, width, SEQ, WIDTH)


@triton.jit
def norm_forward(
    x, gain, shift, y, statistics, rows, width, epsilon,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Layer normalisation of some rows of a model, with their means and inverse deviations."""
    model = tl.program_id(1)
    column = tl.arange(0, WIDTH)
    row, there, place = _tile(model, tl.program_id(0), 0, rows, width, ROWS, WIDTH)
    values = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
    mean = tl.sum(values, 1) / width
    apart = tl.where(there, values - mean[:, None], 0.0)
    inverse = 1 / tl.sqrt(tl.sum(apart * apart, 1) / width + epsilon)
    inside = column < width
    by = tl.load(gain + model * width + column, mask=inside, other=0.0).to(tl.float32)
    to = tl.load(shift + model * width + column, mask=inside, other=0.0).to(tl.float32)
    normed = apart * inverse[:, None] * by[None, :] + to[None, :]
    tl.store(y + place, normed.to(y.dtype.element_ty), mask=there)
    tl.store(statistics + 2 * (model * rows + row), mean, mask=row < rows)
    tl.store(statistics + 2 * (model * rows + row) + 1, inverse, mask=row < rows)


@triton.jit
def norm_backward(
    x, gain, statistics, gradient, passed, x_gradient, sums, rows, width,
    TILES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradients of some tiles of rows, added to the gradients `passed` around the norm. The
    gradients of gain and shift are summed in each program.
    """
    program, model = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, WIDTH)
    inside = column < width
    by = tl.load(gain + model * width + column, mask=inside, other=0.0).to(tl.float32)
    of_gain, of_shift = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    for turn in range(TILES):
        tile = program * TILES + turn
        row, there, place = _tile(model, tile, 0, rows, width, ROWS, WIDTH)
        at = statistics + 2 * (model * rows + row)
        mean = tl.load(at, mask=row < rows, other=0.0)
        inverse = tl.load(at + 1, mask=row < rows, other=0.0)
        g = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
        values = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
        normed = tl.where(there, (values - mean[:, None]) * inverse[:, None], 0.0)
        of_gain += tl.sum(g * normed, 0)
        of_shift += tl.sum(g, 0)
        g = g * by[None, :]
        along = tl.sum(g * normed, 1) / width
        back = (g - tl.sum(g, 1)[:, None] / width - normed * along[:, None]) * inverse[:, None]
        back += tl.load(passed + place, mask=there, other=0.0).to(tl.float32)
        tl.store(x_gradient + place, back.to(x_gradient.dtype.element_ty), mask=there)
    at = sums + (model * tl.num_programs(0) + program) * 2 * width + column
    tl.store(at, of_gain, mask=inside)
    tl.store(at + width, of_shift, mask=inside)


@triton.jit
def gelu_backward(
    x, gradient, x_gradient, sums, rows, width,
    TILES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradient of x from that of the exact GELU, and its sum over rows in each program."""
    program, model = tl.program_id(0), tl.program_id(2)
    first = tl.program_id(1) * WIDTH
    total = tl.zeros((WIDTH,), tl.float32)
    for turn in range(TILES):
        tile = program * TILES + turn
        _, there, place = _tile(model, tile, first, rows, width, ROWS, WIDTH)
        g = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
        values = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
        below = 0.5 * (1 + tl.erf(values * 0.7071067811865476))
        density = tl.exp(-0.5 * values * values) * 0.3989422804014327
        back = (g * (below + values * density)).to(x_gradient.dtype.element_ty)
        tl.store(x_gradient + place, back, mask=there)
        total += tl.sum(back.to(tl.float32), 0)
    _store_sum(sums, total, program, model, first, width, WIDTH)


@triton.jit
def sum_tiles(
    x, sums, rows, width,
    TILES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The sum of some tiles of rows in each program."""
    program, model = tl.program_id(0), tl.program_id(2)
    first = tl.program_id(1) * WIDTH
    total = tl.zeros((WIDTH,), tl.float32)
    for turn in range(TILES):
        tile = program * TILES + turn
        _, there, place = _tile(model, tile, first, rows, width, ROWS, WIDTH)
        total += tl.sum(tl.load(x + place, mask=there, other=0.0).to(tl.float32), 0)
    _store_sum(sums, total, program, model, first, width, WIDTH)


@triton.jit
def sum_programs(sums, out, programs, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over all programs."""
    model, first = tl.program_id(1), tl.program_id(0) * WIDTH
    _, there, place = _tile(model, 0, first, programs, width, ROWS, WIDTH)
    found = tl.sum(tl.load(sums + place, mask=there, other=0.0), 0)
    column = first + tl.arange(0, WIDTH)
    to = out + model * width + column
    tl.store(to, found.to(out.dtype.element_ty), mask=column < width)


@triton.jit
def _rows(x, first, stride, start, count, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDTH)[None, :]
    place = x + (first + row).to(tl.int64) * stride + start + column
    return tl.load(place, mask=(row < count) & (column < width), other=0.0)


@triton.jit
def _store(x, values, first, stride, start, count, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDTH)[None, :]
    place = x + (first + row).to(tl.int64) * stride + start + column
    tl.store(place, values.to(x.dtype.element_ty), mask=(row < count) & (column < width))


@triton.jit
def _scores(q, k, row, column, read, seq, scale, causal: tl.constexpr):
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = column[None, :] < seq
    if causal:
        seen = seen & (column[None, :] <= row[:, None] + (seq - read))
    return tl.where(seen, scores, float("-inf"))


@triton.jit
def _tile(model, tile, first, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The rows of a tile, a mask of the elements that exist, and their offsets."""
    row, column = tile * ROWS + tl.arange(0, ROWS), first + tl.arange(0, WIDTH)
    there = (row < rows)[:, None] & (column < width)[None, :]
    place = (model * rows + row).to(tl.int64)[:, None] * width + column[None, :]
    return row, there, place


@triton.jit
def _store_sum(sums, total, program, model, first, width, WIDTH: tl.constexpr):
    column = first + tl.arange(0, WIDTH)
    at = sums + (model * tl.num_programs(0) + program) * width + column
    tl.store(at, total, mask=column < width)
