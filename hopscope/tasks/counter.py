"""Counter-based random numbers: number j of example i is a pure function of (seed, i, j).

Nothing is drawn in sequence, so numbers do not depend on batch size, workers, threads or device.
Keys are SplitMix64 states (Steele et al. 2014): mixing a state with another number gives a new,
independent state. Normals are computed by Box–Muller. Its logarithm, sine and cosine are written as
additions, multiplications and divisions with one rounding each, which IEEE 754 defines exactly for
every processor, unlike library functions. IEEE 754 also defines square roots exactly, but torch's
library is sometimes wrong in the last bit, for different numbers on different processors.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

GOLDEN = -7046029254386353131  # 2^64 / golden ratio, odd, as a signed number
LOW32 = (1 << 32) - 1
Keys = Int[Tensor, "rows"]
"""One key per example."""
LEADING = -(1 << 27)
"""A mask that keeps the leading 26 of the 53 significant bits of a float64 number."""


def mix(state: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """SplitMix64's finaliser: a bijection of 64-bit numbers in which every output bit depends on
    every input bit.
    """
    state = (state ^ _shift(state, 30)) * -4658895280553007687
    state = (state ^ _shift(state, 27)) * -7723592293110705685
    return state ^ _shift(state, 31)


def _shift(state: Tensor, places: int) -> Tensor:
    # Tensor >> keeps the sign; a logical shift does not.
    return (state >> places) & ((1 << (64 - places)) - 1)


def keys(seeds: Int[Tensor, "*#shape"], *path: Int[Tensor, "*#shape"] | int) -> Tensor:
    """One key per entry, derived from the seed by a path of numbers, e.g. stream and example."""
    state = mix(seeds * GOLDEN)
    for number in path:
        # Filled on the device: a copy from the host cannot be recorded in a CUDA graph.
        step = torch.full((), number, device=state.device) if isinstance(number, int) else number
        state = mix(state ^ ((step + 1) * GOLDEN))
    return state


def bits(key: Int[Tensor, "rows"], count: int) -> Int[Tensor, "rows count"]:
    """`count` random 64-bit numbers for every key."""
    counter = torch.arange(1, count + 1, device=key.device) * GOLDEN
    return mix(key[:, None] + counter)


def integers(key: Int[Tensor, "rows"], count: int, below: int) -> Int[Tensor, "rows count"]:
    """`count` whole numbers in [0, below) for every key."""
    return ((bits(key, count) & LOW32) * below) >> 32


def normals(key: Int[Tensor, "rows"], count: int) -> Float[Tensor, "rows count"]:
    """`count` standard normal numbers for every key, as float32."""
    raw = bits(key, (count + 1) // 2)
    high, low = _shift(raw, 32), raw & LOW32
    radius = root(_log((high.double() + 0.5) * 2.0**-32).mul_(-2.0))
    # 30 bits choose an angle within a quarter turn, the other two bits the quarter.
    angle = ((low & ((1 << 30) - 1)).double() + 0.5) * (math.pi / 2 * 2.0**-30) - math.pi / 4
    sine, cosine = _sine(angle), _cosine(angle)
    turned = (low >> 30) & 1 == 1
    radius = torch.where(low >> 31 == 1, -radius, radius)
    first = torch.where(turned, -sine, cosine).mul_(radius)
    second = torch.where(turned, cosine, sine).mul_(radius)
    pairs = torch.stack((first.float(), second.float()), dim=-1)
    return pairs.flatten(-2)[:, :count]


def root(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The square root of positive float64 numbers, rounded correctly."""
    near = x.sqrt()
    high = (near.view(torch.int64) & LEADING).view(torch.float64)
    low = near - high
    # x - near² without rounding: no factor of a product has more than 27 bits.
    off = (x - high * high).sub_(2.0 * high * low).sub_(low * low)
    return near.add_(off.div_(2.0 * near))


def _polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    result = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result.mul_(x).add_(coefficient)
    return result


def _log(x: Tensor) -> Tensor:
    """Natural logarithm: log(m·2^e) = e·log 2 + 2 artanh((m-1)/(m+1)) with m in [√½, √2)."""
    mantissa, exponent = torch.frexp(x)
    small = mantissa < math.sqrt(0.5)
    mantissa = torch.where(small, mantissa * 2, mantissa)
    exponent = exponent.double() - small.double()
    ratio = (mantissa - 1) / (mantissa + 1)
    series = _polynomial(ratio * ratio, [2 / odd for odd in range(15, 0, -2)])
    return series.mul_(ratio).add_(exponent * math.log(2))


def _sine(x: Tensor) -> Tensor:
    """Taylor's series, exact to 1e-13 on [-π/4, π/4]."""
    terms = [(-1) ** n / math.factorial(2 * n + 1) for n in range(6, -1, -1)]
    return _polynomial(x * x, terms).mul_(x)


def _cosine(x: Tensor) -> Tensor:
    """Taylor's series, exact to 1e-13 on [-π/4, π/4]."""
    terms = [(-1) ** n / math.factorial(2 * n) for n in range(7, -1, -1)]
    return _polynomial(x * x, terms)
