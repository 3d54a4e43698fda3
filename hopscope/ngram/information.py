"""The prediction of the set of lags that stage I chooses: modified χ² mutual information (§3.1).

    I(S) = E[ (Σ_e P(e | x_S)² / μ(e) − 1) · μ(x_S) ]

Here x_S are the symbols at the lags S of a stationary chain, e is the symbol that follows, and the
mean is over chains and x_S. The modification is the last factor: the information of a set about the
next symbol is weighted by the frequency of its combination of symbols, which penalises large sets.
In terms of the joint distribution, I(S) = E[ Σ_{x,e} P(x,e)²/μ(e) − Σ_x μ(x)² ].

In long chains, and if each head copies one lag, the set with the most information gains most in c_S
while a is small. If heads copy a mixture, two windows x and y agree to a degree F_S(x, y), the
product of their inner products over the heads in S. Then c_S gains by the information seen through
the heads,

    I(S) = E[ Σ_{x,y} F_S(x,y) · (Σ_e P(x,e) P(y,e)/μ(e) − μ(x) μ(y)) ]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float

from hopscope.configs import InductionModel, NgramProcess
from hopscope.errors import ConfigError
from hopscope.intervals import Interval, mean, standard_error
from hopscope.ngram.counts import Matches, windows
from hopscope.ngram.parameters import initial, sets
from hopscope.ngram.process import MOST_STATES, Chains, extended, sample_chains, window_distribution
from hopscope.ngram.similarity import MatchSimilarity

BLOCK = 2**22
"""The number of elements in the largest temporary array."""
ROUNDING = 1e-12
"""Sets that differ by less have equal information."""


@dataclass(frozen=True)
class Information:
    """The information of one set of lags."""

    lags: tuple[int, ...]
    value: float
    error: float
    """The standard error of the value, over chains."""
    behind: Interval
    """How much less it has than the set with the most: the 95 % interval of the mean difference,
    paired by chain, and corrected for the number of sets."""


def exact(
    process: NgramProcess, model: InductionModel, chains: int = 2_000, seed: int = 0
) -> list[Information]:
    """The exact information of every set of lags, averaged over `chains` tables from the prior."""
    states = process.alphabet**process.memory
    size = max(model.window, process.memory)
    if states > MOST_STATES or process.alphabet ** (size + 1) > BLOCK:
        raise ConfigError(
            f"{process.alphabet} symbols and windows of {size} are too many for exact "
            "distributions: estimate from sampled chains instead"
        )
    step, lags = max(1, BLOCK // process.alphabet ** (size + 1)), lag_sets(model)
    values = [_of_joint(joint, lags) for joint in _joints(process, size, (chains, seed), step)]
    return _summaries(lags, np.concatenate(values))


def through_heads(
    process: NgramProcess, model: InductionModel, chains: int = 500, seed: int = 0
) -> list[Information]:
    """The information seen through the untrained attention of every set of heads, averaged over
    `chains` tables from the prior.

    Each set is given by the lags at which its heads have their largest weights; 0 is a head with
    its largest weight at several lags.
    """
    size, alphabet = model.window, process.alphabet
    cells = alphabet**size
    if process.memory > size:
        raise ConfigError(
            f"the process depends on {process.memory} earlier symbols and the model's window is "
            f"{size}: take a window of at least {process.memory}, or `exact`"
        )
    if alphabet**process.memory > MOST_STATES or cells**2 > BLOCK:
        raise ConfigError(
            f"{alphabet} symbols and windows of {size} make {cells**2:,} pairs of windows, too "
            f"many to compare (at most {BLOCK:,})"
        )
    agree, values = _agreement(model, alphabet), []
    for (joint,) in _joints(process, size, (chains, seed), step=1):
        own = joint.sum(axis=1)
        # Table entries have a floor above zero, so every symbol's frequency is above zero.
        scaled = joint / np.sqrt(joint.sum(axis=0))
        values.append(agree @ (scaled @ scaled.T - np.outer(own, own)).ravel())
    most = [np.flatnonzero(own == own.max()) + 1 for own in initial(model).w]
    lag = [int(lags[0]) if len(lags) == 1 else 0 for lags in most]
    named = [tuple(lag[head] for head in heads) for heads in sets(model)]
    return _summaries(named, np.stack(values))


def estimated(chains: Chains, model: InductionModel) -> list[Information]:
    """The information of every set of lags, estimated from the frequencies in each chain, and
    averaged over chains.
    """
    alphabet, size = chains.process.alphabet, model.window
    cells = alphabet ** (size + 1)
    if cells > BLOCK:
        raise ConfigError(
            f"{alphabet} symbols and windows of {size} make {cells:,} cells to count, too many (at "
            f"most {BLOCK:,}): take a smaller window"
        )
    window, _ = windows(chains.tokens, size)
    code = window.astype(np.int64) @ alphabet ** np.arange(size)
    number = code * alphabet + chains.tokens[:, size:-1]
    values, lags = [], lag_sets(model)
    for block in _blocks(number, max(1, BLOCK // cells)):
        place = np.arange(len(block))[:, None] * cells + block
        joint = np.bincount(place.ravel(), minlength=len(block) * cells) / block.shape[1]
        values.append(_of_joint(joint.reshape(len(block), -1, alphabet), lags))
    return _summaries(lags, np.concatenate(values))


def rivals(information: list[Information]) -> list[tuple[int, ...]]:
    """The sets that may have the most information: the first, and those whose difference from it
    may be 0 (`behind`).
    """
    ordered = sorted(information, key=lambda each: -each.value)
    return [each.lags for each in ordered if each.behind[0] < ROUNDING]


def winner(information: list[Information]) -> tuple[int, ...]:
    """The set of lags that stage I is predicted to choose."""
    return max(information, key=lambda each: each.value).lags


def lag_sets(model: InductionModel) -> list[tuple[int, ...]]:
    """All sets of lags that sets of heads can copy, the smallest first."""
    lags = range(1, min(model.heads, model.window) + 1)
    return [each for size in range(1, model.degree + 1) for each in combinations(lags, size)]


def _blocks(array: np.ndarray, step: int) -> list[np.ndarray]:
    return [array[first : first + step] for first in range(0, len(array), step)]


def _joints(
    process: NgramProcess, size: int, drawn: tuple[int, int], step: int
) -> Iterator[Float[np.ndarray, "chain window symbol"]]:
    """The frequency of every window of `size` symbols with each next symbol, for tables from the
    prior, `step` tables at a time. `drawn` is the number of tables and their seed.
    """
    evenly = process.model_copy(update={"start": "uniform", "length": size + 1})
    for tables in _blocks(sample_chains(evenly, *drawn).tables, step):
        joint = extended(process, tables, window_distribution(process, tables, size))
        yield joint.reshape(len(tables), -1, process.alphabet)


def _agreement(model: InductionModel, alphabet: int) -> Float[np.ndarray, "set pair"]:
    """The feature of every set for every pair of windows, with untrained heads."""
    cells = alphabet**model.window
    window = np.arange(cells)[:, None] // alphabet ** np.arange(model.window) % alphabet
    queries = (np.broadcast_to(query, window.shape) for query in window)
    return np.concatenate(
        [MatchSimilarity(model, Matches.between(window, each)).features for each in queries], axis=1
    )


def _of_joint(
    joint: Float[np.ndarray, "chain window symbol"], sets_of_lags: list[tuple[int, ...]]
) -> Float[np.ndarray, "chain set"]:
    """The information of every set, from the joint frequencies of windows and next symbols."""
    count, cells, alphabet = joint.shape
    size = round(np.log(cells) / np.log(alphabet))
    cube = joint.reshape(count, *[alphabet] * (size + 1))  # [chain, lag M, …, lag 1, symbol]
    symbol = joint.sum(axis=1)
    values = []
    for lags in sets_of_lags:
        summed = tuple(1 + size - lag for lag in range(1, size + 1) if lag not in lags)
        both = cube.sum(axis=summed).reshape(count, -1, alphabet)
        # If a symbol's frequency is 0, so are its joint frequencies.
        known = np.divide(
            both**2, symbol[:, None], out=np.zeros_like(both), where=symbol[:, None] > 0
        )
        values.append(known.sum(axis=(1, 2)) - (both.sum(axis=2) ** 2).sum(axis=1))
    return np.stack(values, axis=1)


def _summaries(
    sets_of_lags: list[tuple[int, ...]], values: Float[np.ndarray, "chain set"]
) -> list[Information]:
    most, cells = values[:, values.mean(axis=0).argmax()], len(sets_of_lags)
    return [
        Information(lags, float(own.mean()), float(standard_error(own)), mean(most - own, cells))
        for lags, own in zip(sets_of_lags, values.T, strict=True)
    ]
