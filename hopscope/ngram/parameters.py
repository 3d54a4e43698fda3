"""The trained parameters: coefficients c of the selector, lag weights w of the heads, scale a."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int32

from hopscope.configs import InductionModel


@dataclass(frozen=True)
class Parameters:
    """The parameters of a model: c for each set of heads, w for each head and lag, and a."""

    c: Float[np.ndarray, "*epoch set"]
    w: Float[np.ndarray, "*epoch head lag"]
    a: Float[np.ndarray, "*epoch"]

    @property
    def attention(self) -> Float[np.ndarray, "*epoch head lag"]:
        """The attention of each head to each lag."""
        return softmax(self.w)

    @property
    def shares(self) -> Float[np.ndarray, "*epoch set"]:
        """Each set's share of the sum of squared coefficients; NaN if all are 0 or a square is not
        finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.c**2
            shares: np.ndarray = squares / squares.sum(axis=-1, keepdims=True)
        return shares

    def named(self) -> dict[str, np.ndarray]:
        """The arrays by the names c, w and a, as in checkpoints."""
        return {"c": self.c, "w": self.w, "a": self.a}

    @classmethod
    def of(cls, named: Mapping[str, np.ndarray]) -> "Parameters":
        """Parameters from arrays by name, copied as float64; other names are ignored."""
        return cls(**{name: np.array(named[name], float) for name in ("c", "w", "a")})


@dataclass(frozen=True)
class Course(Parameters):
    """The parameters of one seed's model during training, with a row for every recorded epoch."""

    epochs: Int32[np.ndarray, "epoch"]

    def at(self, number: int) -> Parameters:
        """The parameters at `epochs[number]`."""
        return Parameters(self.c[number], self.w[number], np.array(self.a[number]))


def initial(model: InductionModel) -> Parameters:
    """The initial parameters, which do not depend on a seed."""
    w = np.full((model.heads, model.window), model.other)
    for head in range(min(model.heads, model.window)):
        w[head, head] = model.own
    return Parameters(c=np.full(len(sets(model)), model.c), w=w, a=np.array(model.a))


def sets(model: InductionModel) -> list[tuple[int, ...]]:
    """The sets of heads with a coefficient, the smallest first. Heads count from 0."""
    sizes = range(0 if model.constant else 1, model.degree + 1)
    return [heads for size in sizes for heads in combinations(range(model.heads), size)]


def set_name(heads: tuple[int, ...]) -> str:
    """The name of a set of heads, counted from 1.

    >>> set_name((0, 1))
    '{1,2}'
    """
    return "{" + ",".join(str(head + 1) for head in heads) + "}"


def numbers(model: InductionModel, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Every single parameter by its name: `c{1,2}`, `w1[2]` (head 1, lag 2), `a`."""
    c = {f"c{set_name(heads)}": float(c) for heads, c in zip(sets(model), state["c"], strict=True)}
    w = {f"w{head + 1}[{lag + 1}]": float(w) for (head, lag), w in np.ndenumerate(state["w"])}
    return {**c, **w, "a": float(state["a"])}


def softmax(values: Float[np.ndarray, "*axes last"]) -> Float[np.ndarray, "*axes last"]:
    """The softmax over the last axis."""
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    scaled: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
    return scaled
