"""n-gram Markov chains, each with a transition table of its own.

A *configuration* is what the parents' symbols are: digit k of its number, in base `alphabet`, is
the symbol at the k-th parent's lag. Chain i is the same however many chains are drawn with it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int, Int8

from hopscope.configs import NgramProcess
from hopscope.errors import ConfigError
from hopscope.ngram.stationary import MOST_STATES, window_distribution

FLOOR = 1e-30
"""Least probability in a table: every state stays within reach of every other. Nothing so rare is
ever seen, but a stationary distribution is only unique where all states are in reach."""

Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")


@dataclass(frozen=True)
class Chains:
    """Sampled chains, and the tables they were sampled from."""

    process: NgramProcess
    tokens: Int8[np.ndarray, "chain seq"]
    """What the model reads, and in the last column what it is to predict."""
    tables: Float[np.ndarray, "chain configuration symbol"]
    """Probability of the next symbol, by configuration of the parents."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def targets(self) -> Int8[np.ndarray, "chain"]:
        """The last symbol of each chain, which the model is to predict."""
        return self.tokens[:, -1]

    def truth(self) -> Float[np.ndarray, "chain symbol"]:
        """The true distribution of what follows each chain."""
        end = self.tokens.shape[1] - 1
        rows: np.ndarray = self.tables[
            np.arange(len(self)), configuration(self.process, self.tokens, end)
        ]
        return rows


def sample_chains(process: NgramProcess, count: int, seed: int, split: Split = "train") -> Chains:
    """Draw chains; a pure function of its arguments."""
    streams = np.random.SeedSequence([seed, SPLITS.index(split)]).spawn(3)
    rows, exponents, steps = (np.random.Generator(np.random.PCG64DXSM(s)) for s in streams)
    tables = _tables(process, count, rows, exponents)
    length, memory = process.length + 1, process.memory
    uniforms = steps.random((count, 1 + length))
    tokens = np.empty((count, length), np.int8)
    tokens[:, :memory] = _start(process, tables, uniforms)
    cumulative = tables[:, :, :-1].cumsum(axis=-1)
    each = np.arange(count)
    for place in range(memory, length):
        bounds = cumulative[each, configuration(process, tokens, place)]
        tokens[:, place] = (uniforms[:, 1 + place, None] >= bounds).sum(axis=-1)
    return Chains(process, tokens, tables)


def configuration(
    process: NgramProcess, tokens: Int8[np.ndarray, "chain seq"], place: int
) -> Int[np.ndarray, "chain"]:
    """What the parents of this place are, as a number."""
    digits = (tokens[:, place - lag].astype(np.int64) for lag in process.parents)
    number = np.zeros(len(tokens), np.int64)
    for power, digit in enumerate(digits):
        number += digit * process.alphabet**power
    return number


def _tables(
    process: NgramProcess, count: int, rows: np.random.Generator, exponents: np.random.Generator
) -> Float[np.ndarray, "chain configuration symbol"]:
    """Dirichlet rows, by way of logarithms: for a small alpha a gamma number is below any float."""
    shape = (count, process.alphabet ** len(process.parents), process.alphabet)
    logs = np.log(rows.standard_gamma(process.alpha + 1, shape))
    logs -= exponents.standard_exponential(shape) / process.alpha
    tables = np.exp(logs - logs.max(axis=-1, keepdims=True))
    tables /= tables.sum(axis=-1, keepdims=True)
    floored: np.ndarray = np.maximum(tables, FLOOR)
    return floored


def _start(
    process: NgramProcess,
    tables: Float[np.ndarray, "chain configuration symbol"],
    uniforms: Float[np.ndarray, "chain place"],
) -> Int[np.ndarray, "chain memory"]:
    """The first symbols of every chain, oldest first."""
    alphabet, memory = process.alphabet, process.memory
    if process.start == "uniform":
        return (uniforms[:, 1 : 1 + memory] * alphabet).astype(np.int64)
    if alphabet**memory > MOST_STATES:
        raise ConfigError(
            f"{alphabet} symbols and a largest lag of {memory} give {alphabet**memory:,} states; "
            f"stationary distributions are computed up to {MOST_STATES:,}: use start = uniform"
        )
    weights = window_distribution(process, tables, memory)
    bounds = weights.cumsum(axis=-1)[:, :-1]
    state = (uniforms[:, :1] >= bounds).sum(axis=-1)
    return np.stack([state // alphabet**lag % alphabet for lag in reversed(range(memory))], axis=1)
