"""Which set of lags stage I will choose: the modified χ² mutual information (§3.1).

    I(S) = E[ (Σ_e P(e | x_S)² / μ(e) − 1) · μ(x_S) ]

Here x_S are the symbols at the lags S of a stationary chain, e is the symbol that follows, and the
mean is over chains and x_S. The last factor is what makes it modified: what a set tells about the
next symbol is weighed by how often its symbols come together, so that a large set pays for being
rare. In terms of the joint distribution, I(S) = E[ Σ_{x,e} P(x,e)²/μ(e) − Σ_x μ(x)² ].

In long chains it is what c_S gains while a is small, for heads that copy one lag each. Heads that
copy a mixture see two windows x and y agree to a degree F_S(x, y), the product of their inner
products, and what c_S gains is the information seen through the heads,

    I(S) = E[ Σ_{x,y} F_S(x,y) · (Σ_e P(x,e) P(y,e)/μ(e) − μ(x) μ(y)) ]
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from hopscope.configs import InductionModel, NgramProcess
from hopscope.errors import ConfigError
from hopscope.intervals import standard_error
from hopscope.ngram.matches import Matches, windows
from hopscope.ngram.parameters import initial, sets
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.similarity import Similarity
from hopscope.ngram.stationary import MOST_STATES, extended, window_distribution

BLOCK = 2**22
"""Numbers in the largest temporary array."""


@dataclass(frozen=True)
class Information:
    """The information of one set of lags."""

    lags: tuple[int, ...]
    value: float
    error: float
    """Standard error of the value, over chains."""


def lag_sets(window: int, degree: int) -> list[tuple[int, ...]]:
    """All sets of at most `degree` lags, small ones first."""
    return [
        lags for size in range(1, degree + 1) for lags in combinations(range(1, window + 1), size)
    ]


def exact(
    process: NgramProcess, model: InductionModel, chains: int = 2_000, seed: int = 0
) -> list[Information]:
    """The exact information of every set of lags in each table, averaged over tables from the
    prior.
    """
    states = process.alphabet**process.memory
    size = max(model.window, process.memory)
    if states > MOST_STATES or process.alphabet ** (size + 1) > BLOCK:
        raise ConfigError(
            f"{process.alphabet} symbols and windows of {size} are too many for exact "
            "distributions: estimate from sampled chains instead"
        )
    tables = _tables(process, size, chains, seed)
    step = max(1, BLOCK // process.alphabet ** (size + 1))
    lags = lag_sets(min(model.heads, model.window), model.degree)
    values = [
        _values(process, tables[first : first + step], size, lags)
        for first in range(0, chains, step)
    ]
    return _summaries(lags, np.concatenate(values))


def through_heads(
    process: NgramProcess, model: InductionModel, chains: int = 500, seed: int = 0
) -> list[Information]:
    """For every set of heads, what their initial attention sees: the mean over tables. The sets
    are named by the lags of their heads' largest weights.
    """
    size, alphabet = model.window, process.alphabet
    cells = alphabet**size
    if alphabet**process.memory > MOST_STATES or cells**2 > BLOCK:
        raise ConfigError(
            f"{alphabet} symbols and windows of {size} make {cells**2:,} pairs of windows, too "
            f"many to compare (at most {BLOCK:,})"
        )
    window = np.arange(cells)[:, None] // alphabet ** np.arange(size) % alphabet
    agree = _agreement(model, window)
    tables = _tables(process, size, chains, seed)
    values = []
    for table in tables:
        weights = window_distribution(process, table[None], size)
        joint = extended(process, table[None], weights).reshape(cells, alphabet)
        symbol, own = joint.sum(axis=0), joint.sum(axis=1)
        # Tables are floored above zero, and so is every symbol's frequency.
        scaled = joint / np.sqrt(symbol)
        excess = scaled @ scaled.T - np.outer(own, own)
        values.append(agree @ excess.ravel())
    attention = initial(model).attention
    lags = [tuple(int(attention[head].argmax()) + 1 for head in heads) for heads in sets(model)]
    return _summaries(lags, np.stack(values))


def _agreement(
    model: InductionModel, window: Int[np.ndarray, "window lag"]
) -> Float[np.ndarray, "set pair"]:
    """Every set's feature between every two windows, for untrained heads."""
    parts = []
    for query in window:
        cross = (window[:, :, None] == query).reshape(len(window), -1).astype(float)
        inside = (window[:, :, None] == window[:, None]).reshape(len(window), -1).astype(float)
        own = np.tile((query[:, None] == query).ravel().astype(float), (len(window), 1))
        similarity = Similarity(sets(model), model.unit_copies, Matches(cross, inside, own))
        parts.append(similarity.copies(initial(model).w).features)
    return np.concatenate(parts, axis=1)


def estimated(chains: Chains, model: InductionModel) -> list[Information]:
    """The information of every set of lags in the frequencies of each sampled chain, averaged over
    chains.
    """
    alphabet, size = chains.process.alphabet, model.window
    seen, _ = windows(chains.tokens, size)
    code = seen.astype(np.int64) @ alphabet ** np.arange(size)
    number = code * alphabet + chains.tokens[:, size:-1]
    cells = alphabet ** (size + 1)
    if cells > BLOCK:
        raise ConfigError(
            f"{alphabet} symbols and windows of {size} make {cells:,} cells to count, too many (at "
            f"most {BLOCK:,}): take a smaller window"
        )
    lags, step = lag_sets(min(model.heads, size), model.degree), max(1, BLOCK // cells)
    values = []
    for first in range(0, len(chains), step):
        block = number[first : first + step]
        place = np.arange(len(block))[:, None] * cells + block
        joint = np.bincount(place.ravel(), minlength=len(block) * cells) / block.shape[1]
        values.append(_of_joint(joint.reshape(len(block), -1, alphabet), lags))
    return _summaries(lags, np.concatenate(values))


def winner(found: list[Information]) -> tuple[int, ...]:
    """The set of lags that stage I is predicted to choose."""
    return max(found, key=lambda each: each.value).lags


def _tables(
    process: NgramProcess, size: int, chains: int, seed: int
) -> Float[np.ndarray, "chain configuration symbol"]:
    """Transition tables from the prior, without the chains."""
    evenly = process.model_copy(update={"start": "uniform", "length": size + 1})
    return sample_chains(evenly, chains, seed).tables


def _values(
    process: NgramProcess, tables: np.ndarray, size: int, sets_of_lags: list[tuple[int, ...]]
) -> Float[np.ndarray, "chain set"]:
    weights = window_distribution(process, tables, size)
    joint = extended(process, tables, weights)
    return _of_joint(joint.reshape(len(tables), -1, process.alphabet), sets_of_lags)


def _of_joint(
    joint: Float[np.ndarray, "chain window symbol"], sets_of_lags: list[tuple[int, ...]]
) -> Float[np.ndarray, "chain set"]:
    """The information of every set, from the frequencies of windows and what follows them."""
    count, cells, alphabet = joint.shape
    size = round(np.log(cells) / np.log(alphabet))
    cube = joint.reshape(count, *[alphabet] * (size + 1))  # [chain, lag M, …, lag 1, symbol]
    symbol = joint.sum(axis=1)
    values = []
    for lags in sets_of_lags:
        summed = tuple(1 + size - lag for lag in range(1, size + 1) if lag not in lags)
        both = cube.sum(axis=summed).reshape(count, -1, alphabet)
        # Where a symbol never comes, neither does it with anything.
        known = np.divide(
            both**2, symbol[:, None], out=np.zeros_like(both), where=symbol[:, None] > 0
        )
        values.append(known.sum(axis=(1, 2)) - (both.sum(axis=2) ** 2).sum(axis=1))
    return np.stack(values, axis=1)


def _summaries(
    sets_of_lags: list[tuple[int, ...]], values: Float[np.ndarray, "chain set"]
) -> list[Information]:
    errors, means = standard_error(values), values.mean(axis=0)
    return [
        Information(lags, float(mean), float(error))
        for lags, mean, error in zip(sets_of_lags, means, errors, strict=True)
    ]
