"""n-gram Markov chains, each with a transition table of its own, and what they do in the long run.

A *configuration* is what the parents' symbols are: digit k of its number, in base `alphabet`, is
the symbol at the k-th parent's lag. Chain i is the same however many chains are drawn with it.

A *window* of n symbols is a number in base `alphabet`; its lowest digit is the last symbol (lag
1), the next one the symbol before (lag 2), and so on. The stationary distribution over windows of
`memory` symbols is computed by state reduction (Grassmann, Taksar and Heyman 1985): states are
taken out one by one and their traffic is passed on. It never subtracts, so it keeps its digits
where a table's rows are all but deterministic and an eigenvector would lose them.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int, Int8

from hopscope.configs import NgramProcess
from hopscope.errors import ConfigError

FLOOR = 1e-30
"""Least probability in a table: every state stays within reach of every other. Nothing so rare is
ever seen, but a stationary distribution is only unique where all states are in reach."""
MOST_STATES = 1_024
"""The most states (windows of `memory` symbols) whose stationary distribution is computed."""
BLOCK = 2**18
"""Numbers in the largest temporary array."""

Tokens = Int8[np.ndarray, "chain seq"]
Tables = Float[np.ndarray, "chain configuration symbol"]

Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")


@dataclass(frozen=True)
class Chains:
    """Sampled chains, and the tables they were sampled from."""

    process: NgramProcess
    tokens: Tokens
    """What the model reads, and in the last column the target."""
    tables: Tables
    """Probability of the next symbol, by configuration of the parents."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def targets(self) -> Int8[np.ndarray, "chain"]:
        """The last symbol of each chain, which the model is to predict."""
        return self.tokens[:, -1]

    def truth(self) -> Float[np.ndarray, "chain symbol"]:
        """The true distribution of the symbol that follows each chain."""
        asked = configuration(self.process, self.tokens, self.tokens.shape[1] - 1)
        rows: np.ndarray = self.tables[np.arange(len(self)), asked]
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


def configuration(process: NgramProcess, tokens: Tokens, place: int) -> Int[np.ndarray, "chain"]:
    """The configuration of the parents of this place, as a number."""
    number = np.zeros(len(tokens), np.int64)
    for power, lag in enumerate(process.parents):
        number += tokens[:, place - lag].astype(np.int64) * process.alphabet**power
    return number


def _tables(
    process: NgramProcess, count: int, rows: np.random.Generator, exponents: np.random.Generator
) -> Tables:
    """Dirichlet rows, by way of logarithms: for a small alpha a gamma number is below any float."""
    shape = (count, process.alphabet ** len(process.parents), process.alphabet)
    logs = np.log(rows.standard_gamma(process.alpha + 1, shape))
    logs -= exponents.standard_exponential(shape) / process.alpha
    tables = np.exp(logs - logs.max(axis=-1, keepdims=True))
    tables /= tables.sum(axis=-1, keepdims=True)
    floored: np.ndarray = np.maximum(tables, FLOOR)
    return floored


def _start(
    process: NgramProcess, tables: Tables, uniforms: Float[np.ndarray, "chain place"]
) -> Int[np.ndarray, "chain memory"]:
    """The first symbols of every chain, oldest first."""
    alphabet, memory = process.alphabet, process.memory
    if process.start == "uniform":
        return (uniforms[:, 1 : 1 + memory] * alphabet).astype(np.int64)
    if alphabet**memory > MOST_STATES:
        raise ConfigError(
            f"{alphabet} symbols and a largest lag of {memory} give {alphabet}^{memory} states; "
            f"stationary distributions are computed up to {MOST_STATES:,}: use "
            "process.start=uniform"
        )
    weights = window_distribution(process, tables, memory)
    bounds = weights.cumsum(axis=-1)[:, :-1]
    state = (uniforms[:, :1] >= bounds).sum(axis=-1)
    return np.stack([state // alphabet**lag % alphabet for lag in reversed(range(memory))], axis=1)


def window_distribution(
    process: NgramProcess, tables: Tables, size: int
) -> Float[np.ndarray, "chain window"]:
    """How often each window of at least `memory` symbols occurs in each chain, in the long run."""
    states = process.alphabet**process.memory
    step = max(1, BLOCK // states**2)
    blocks = [
        _reduced(_transitions(process, tables[first : first + step]))
        for first in range(0, len(tables), step)
    ]
    weights = np.concatenate(blocks)
    for _ in range(process.memory, size):
        weights = extended(process, tables, weights)
    return weights


def extended(
    process: NgramProcess, tables: Tables, weights: Float[np.ndarray, "chain window"]
) -> Float[np.ndarray, "chain longer"]:
    """The distribution of windows one symbol longer: the next symbol is the lowest digit."""
    rows = tables[:, configurations(process, weights.shape[1])]
    joint: np.ndarray = weights[:, :, None] * rows
    return joint.reshape(len(tables), -1)


def configurations(process: NgramProcess, windows: int) -> Int[np.ndarray, "window"]:
    """The parents' configuration in each of the first windows."""
    number, alphabet = np.zeros(windows, np.int64), process.alphabet
    for power, lag in enumerate(process.parents):
        number += np.arange(windows) // alphabet ** (lag - 1) % alphabet * alphabet**power
    return number


def _transitions(process: NgramProcess, tables: Tables) -> Float[np.ndarray, "chain state state"]:
    """The transition matrix over windows of `memory` symbols."""
    states = process.alphabet**process.memory
    matrix = np.zeros((len(tables), states, states))
    state = np.arange(states)[:, None]
    following = state * process.alphabet % states + np.arange(process.alphabet)
    matrix[:, state, following] = tables[:, configurations(process, states)]
    return matrix


def _reduced(matrix: Float[np.ndarray, "chain state state"]) -> Float[np.ndarray, "chain state"]:
    """Stationary distributions of transition matrices, which are used up."""
    states = matrix.shape[1]
    for last in reversed(range(1, states)):
        leaving = matrix[:, last, :last].sum(axis=-1, keepdims=True)
        onward = matrix[:, last, :last] / leaving
        matrix[:, :last, :last] += matrix[:, :last, last, None] * onward[:, None]
        matrix[:, :last, last] /= leaving
    weights = np.zeros(matrix.shape[:2])
    weights[:, 0] = 1
    for state in range(1, states):
        weights[:, state] = (weights[:, :state] * matrix[:, :state, state]).sum(axis=-1)
        weights /= weights.sum(axis=-1, keepdims=True)  # or it might overflow
    return weights
