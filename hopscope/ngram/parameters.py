"""What is trained: coefficients c of the selector, lag weights w of the heads, the scale a."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from hopscope.configs import InductionModel


@dataclass(frozen=True)
class Parameters:
    """The trained numbers of a model: c for each set of heads, w for each head and lag, and a."""

    c: Float[np.ndarray, "set"]
    w: Float[np.ndarray, "head lag"]
    a: Float[np.ndarray, ""]

    @property
    def attention(self) -> Float[np.ndarray, "head lag"]:
        """How much of the symbol at each lag each head copies."""
        return softmax(self.w)

    @property
    def shares(self) -> Float[np.ndarray, "set"]:
        """The part of each set in the sum of squares; not a number if all are 0, or one is so
        large that its square is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.c**2
            shares: np.ndarray = squares / squares.sum()
        return shares

    def named(self) -> dict[str, np.ndarray]:
        """The arrays by their names c, w and a, as checkpoints keep them."""
        return {"c": self.c, "w": self.w, "a": self.a}

    @classmethod
    def of(cls, named: Mapping[str, np.ndarray]) -> "Parameters":
        """What `named` gave; other names are ignored, and the arrays are copied as float64."""
        return cls(**{name: np.array(named[name], float) for name in ("c", "w", "a")})


def initial(model: InductionModel) -> Parameters:
    """What training starts from: nothing in it is random."""
    w = np.full((model.heads, model.window), model.other)
    for head in range(min(model.heads, model.window)):
        w[head, head] = model.own
    return Parameters(c=np.full(len(sets(model)), model.c), w=w, a=np.array(model.a))


def sets(model: InductionModel) -> list[tuple[int, ...]]:
    """The sets of heads that have a coefficient, small ones first. Heads count from 0."""
    sizes = range(0 if model.constant else 1, model.degree + 1)
    return [heads for size in sizes for heads in combinations(range(model.heads), size)]


def set_name(heads: tuple[int, ...]) -> str:
    """As it is printed, heads counted from 1.

    >>> set_name((0, 1))
    '{1,2}'
    """
    return "{" + ",".join(str(head + 1) for head in heads) + "}"


def softmax(values: Float[np.ndarray, "*axes last"]) -> Float[np.ndarray, "*axes last"]:
    """The softmax over the last axis."""
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    scaled: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
    return scaled
