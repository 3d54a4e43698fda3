"""n-gram Markov chains, each with its own transition table, and their stationary distributions.

A *configuration* is a combination of the parents' symbols, as a number: digit k, in base
`alphabet`, is the symbol at the k-th parent's lag. Chain i does not depend on how many chains are
drawn.

A *window* of n symbols is a number in base `alphabet`. Its lowest digit is the last symbol (lag 1),
the next digit the symbol before (lag 2), and so on. The stationary distribution over windows of
`memory` symbols is computed by state reduction (Grassmann, Taksar and Heyman 1985): states are
removed one by one, and their transitions are redistributed. The algorithm has no subtractions, so
it stays accurate for nearly deterministic tables, unlike an eigenvector.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Int8

from hopscope.configs import NgramProcess, Split
from hopscope.configs.recipe import SPLITS
from hopscope.errors import ConfigError

FLOOR = 1e-30
"""The least probability in a table. Such rare symbols never occur, but without them some states
might not be reachable, and the stationary distribution would not be unique."""
MOST_STATES = 1_024
"""The most states (windows of `memory` symbols) whose stationary distribution is computed."""
BLOCK = 2**18
"""The number of elements in the largest temporary array."""

ChainTokens = Int8[np.ndarray, "chain seq"]
TransitionTables = Float[np.ndarray, "chain configuration symbol"]


@dataclass(frozen=True)
class Chains:
    """Sampled chains, and the tables from which they were sampled."""

    process: NgramProcess
    tokens: ChainTokens
    """The symbols that the model gets; the last column is the target."""
    tables: TransitionTables
    """The probability of each next symbol, by configuration of the parents."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def targets(self) -> Int8[np.ndarray, "chain"]:
        """The last symbol of each chain, which the model predicts."""
        return self.tokens[:, -1]

    def truth(self) -> Float[np.ndarray, "chain symbol"]:
        """The true distribution of the symbol that follows each chain."""
        asked = configuration(self.process, self.tokens, self.tokens.shape[1] - 1)
        rows: np.ndarray = self.tables[np.arange(len(self)), asked]
        return rows


def sample_chains(process: NgramProcess, count: int, seed: int, split: Split = "train") -> Chains:
    """Draw chains. The result depends only on the arguments."""
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
    process: NgramProcess, tokens: ChainTokens, place: int
) -> Int[np.ndarray, "chain"]:
    """The configuration of the parents of a place, for each chain."""
    number = np.zeros(len(tokens), np.int64)
    for power, lag in enumerate(process.parents):
        number += tokens[:, place - lag].astype(np.int64) * process.alphabet**power
    return number


def _tables(
    process: NgramProcess, count: int, rows: np.random.Generator, exponents: np.random.Generator
) -> TransitionTables:
    """Dirichlet rows, computed with logarithms, since gamma numbers underflow for a small alpha."""
    shape = (count, process.alphabet ** len(process.parents), process.alphabet)
    logs = np.log(rows.standard_gamma(process.alpha + 1, shape))
    logs -= exponents.standard_exponential(shape) / process.alpha
    tables = np.exp(logs - logs.max(axis=-1, keepdims=True))
    tables /= tables.sum(axis=-1, keepdims=True)
    floored: np.ndarray = np.maximum(tables, FLOOR)
    return floored


def _start(
    process: NgramProcess, tables: TransitionTables, uniforms: Float[np.ndarray, "chain place"]
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
    process: NgramProcess, tables: TransitionTables, size: int
) -> Float[np.ndarray, "chain window"]:
    """The stationary distribution of windows of `size` symbols (at least `memory`), by chain."""
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
    process: NgramProcess, tables: TransitionTables, weights: Float[np.ndarray, "chain window"]
) -> Float[np.ndarray, "chain longer"]:
    """The distribution of windows with one more symbol, which is the lowest digit."""
    rows = tables[:, configurations(process, weights.shape[1])]
    joint: np.ndarray = weights[:, :, None] * rows
    return joint.reshape(len(tables), -1)


def configurations(process: NgramProcess, windows: int) -> Int[np.ndarray, "window"]:
    """The configuration of the parents for each of the windows 0 … `windows` - 1."""
    number, alphabet = np.zeros(windows, np.int64), process.alphabet
    for power, lag in enumerate(process.parents):
        number += np.arange(windows) // alphabet ** (lag - 1) % alphabet * alphabet**power
    return number


def _transitions(
    process: NgramProcess, tables: TransitionTables
) -> Float[np.ndarray, "chain state state"]:
    """The transition matrix over windows of `memory` symbols."""
    states = process.alphabet**process.memory
    matrix = np.zeros((len(tables), states, states))
    state = np.arange(states)[:, None]
    following = state * process.alphabet % states + np.arange(process.alphabet)
    matrix[:, state, following] = tables[:, configurations(process, states)]
    return matrix


def _reduced(matrix: Float[np.ndarray, "chain state state"]) -> Float[np.ndarray, "chain state"]:
    """Stationary distributions of transition matrices; the matrices are overwritten."""
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
        weights /= weights.sum(axis=-1, keepdims=True)  # prevents overflow
    return weights
