"""Kernels for a GPU, in Triton: what `graphic` calls.

A matrix of a fleet has a model axis in front of its rows; models have equally many rows.
Whatever is summed is summed in float32. Numbers are read and written in the tensors' own precision.
"""

import triton
import triton.language as tl


@triton.jit
def attend(
    query, joined, out, logsum, heads, read, seq, width, scale,
    query_row, key_row, causal: tl.constexpr,
    READ: tl.constexpr, SEQ: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """What one head of one example brings to the reading positions."""
    example, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    row, column = tl.arange(0, READ), tl.arange(0, SEQ)
    q = _rows(query, example * read, query_row, head * width, read, width, READ, WIDTH)
    key = key_row - 2 * heads * width + head * width
    k = _rows(joined, example * seq, key_row, key, seq, width, SEQ, WIDTH)
    v = _rows(joined, example * seq, key_row, key + heads * width, seq, width, SEQ, WIDTH)
    scores = _scores(q, k, row, column, read, seq, scale, causal)
    most = tl.max(scores, 1)
    weights = tl.exp(scores - most[:, None])
    total = tl.sum(weights, 1)
    weights = weights / total[:, None]
    brought = tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    _store(out, brought, example * read, heads * width, head * width, read, width, READ, WIDTH)
    tl.store(logsum + tl.program_id(0) * read + row, most + tl.log(total), mask=row < read)


@triton.jit
def attend_back(
    query, joined, logsum, gradient, query_gradient, joined_gradient, heads, read, seq, width,
    scale, query_row, key_row, causal: tl.constexpr,
    READ: tl.constexpr, SEQ: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradients of one head of one example; the softmax is computed again from its log-sums."""
    example, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    row, column = tl.arange(0, READ), tl.arange(0, SEQ)
    q = _rows(query, example * read, query_row, head * width, read, width, READ, WIDTH)
    key = key_row - 2 * heads * width + head * width
    value = key + heads * width
    k = _rows(joined, example * seq, key_row, key, seq, width, SEQ, WIDTH)
    v = _rows(joined, example * seq, key_row, value, seq, width, SEQ, WIDTH)
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
    _store(joined_gradient, of_k, example * seq, key_row, key, seq, width, SEQ, WIDTH)
    _store(joined_gradient, of_v, example * seq, key_row, value, seq, width, SEQ, WIDTH)


@triton.jit
def norm(
    x, gain, shift, y, statistics, rows, width, epsilon,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Layer normalisation of some rows of a model; and their means and inverse deviations."""
    model = tl.program_id(1)
    column = tl.arange(0, WIDTH)
    row, there, place = _tile(model, tl.program_id(0), rows, width, ROWS, WIDTH)
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
def norm_back(
    x, gain, statistics, gradient, x_gradient, sums, rows, width,
    TILES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The gradients of some tiles of rows; those of gain and shift as a sum for each program."""
    program, model = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, WIDTH)
    inside = column < width
    by = tl.load(gain + model * width + column, mask=inside, other=0.0).to(tl.float32)
    of_gain, of_shift = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    for turn in range(TILES):
        tile = program * TILES + turn
        row, there, place = _tile(model, tile, rows, width, ROWS, WIDTH)
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
        tl.store(x_gradient + place, back.to(x_gradient.dtype.element_ty), mask=there)
    at = sums + (model * tl.num_programs(0) + program) * 2 * width + column
    tl.store(at, of_gain, mask=inside)
    tl.store(at + width, of_shift, mask=inside)


@triton.jit
def gelu_back(
    x, gradient, y, x_gradient, sums, rows, width,
    TILES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """GELU, exact, once more, and from its gradient that of x; and its sum, for each program."""
    program, model = tl.program_id(0), tl.program_id(2)
    first = tl.program_id(1) * WIDTH
    total = tl.zeros((WIDTH,), tl.float32)
    for turn in range(TILES):
        tile = program * TILES + turn
        there, place = _block(model, tile, first, rows, width, ROWS, WIDTH)
        g = tl.load(gradient + place, mask=there, other=0.0).to(tl.float32)
        values = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
        below = 0.5 * (1 + tl.erf(values * 0.7071067811865476))
        density = tl.exp(-0.5 * values * values) * 0.3989422804014327
        back = (g * (below + values * density)).to(x_gradient.dtype.element_ty)
        tl.store(y + place, (values * below).to(y.dtype.element_ty), mask=there)
        tl.store(x_gradient + place, back, mask=there)
        total += tl.sum(back.to(tl.float32), 0)
    _store_sum(sums, total, program, model, first, width, WIDTH)


@triton.jit
def sum_rows(
    x, sums, rows, width,
    TILES: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The sum of some tiles of rows, for each program."""
    program, model = tl.program_id(0), tl.program_id(2)
    first = tl.program_id(1) * WIDTH
    total = tl.zeros((WIDTH,), tl.float32)
    for turn in range(TILES):
        tile = program * TILES + turn
        there, place = _block(model, tile, first, rows, width, ROWS, WIDTH)
        total += tl.sum(tl.load(x + place, mask=there, other=0.0).to(tl.float32), 0)
    _store_sum(sums, total, program, model, first, width, WIDTH)


@triton.jit
def total(sums, out, programs, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The sum of what the programs summed."""
    model, first = tl.program_id(1), tl.program_id(0) * WIDTH
    there, place = _block(model, 0, first, programs, width, ROWS, WIDTH)
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
def _tile(model, tile, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row, column = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    there = (row < rows)[:, None] & (column < width)[None, :]
    place = (model * rows + row).to(tl.int64)[:, None] * width + column[None, :]
    return row, there, place


@triton.jit
def _block(model, tile, first, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row, column = tile * ROWS + tl.arange(0, ROWS), first + tl.arange(0, WIDTH)
    there = (row < rows)[:, None] & (column < width)[None, :]
    return there, (model * rows + row).to(tl.int64)[:, None] * width + column[None, :]


@triton.jit
def _store_sum(sums, total, program, model, first, width, WIDTH: tl.constexpr):
    column = first + tl.arange(0, WIDTH)
    at = sums + (model * tl.num_programs(0) + program) * width + column
    tl.store(at, total, mask=column < width)
