"""The stationary distribution of a chain over its windows, exact.

A *window* of n symbols is a number in base `alphabet`; its lowest digit is the last symbol (lag
1), the next one the symbol before (lag 2), and so on.

The chain over windows of `memory` symbols is solved by state reduction (Grassmann, Taksar and
Heyman 1985): states are taken out one by one and their traffic is passed on. It never subtracts,
so that it keeps its digits where a table's rows are all but deterministic and an eigenvector
would lose them.
"""

import numpy as np
from jaxtyping import Float, Int

from hopscope.configs import NgramProcess

MOST_STATES = 1_024
"""The most states (windows of `memory` symbols) whose stationary distribution is computed."""
BLOCK = 2**18
"""Numbers in the largest temporary array."""


def window_distribution(
    process: NgramProcess, tables: Float[np.ndarray, "chain configuration symbol"], size: int
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
    process: NgramProcess,
    tables: Float[np.ndarray, "chain configuration symbol"],
    weights: Float[np.ndarray, "chain window"],
) -> Float[np.ndarray, "chain longer"]:
    """The distribution of windows one symbol longer: the next symbol is the lowest digit."""
    rows = tables[:, configurations(process, weights.shape[1])]
    joint: np.ndarray = weights[:, :, None] * rows
    return joint.reshape(len(tables), -1)


def configurations(process: NgramProcess, windows: int) -> Int[np.ndarray, "window"]:
    """The parents' configuration in each of the first windows."""
    window, alphabet = np.arange(windows), process.alphabet
    digits = [window // alphabet ** (lag - 1) % alphabet for lag in process.parents]
    weights = alphabet ** np.arange(len(digits))
    number: np.ndarray = np.stack(digits, axis=1) @ weights
    return number


def _transitions(
    process: NgramProcess, tables: Float[np.ndarray, "chain configuration symbol"]
) -> Float[np.ndarray, "chain state state"]:
    states = process.alphabet**process.memory
    rows = tables[:, configurations(process, states)]
    matrix = np.zeros((len(tables), states, states))
    state = np.arange(states)[:, None]
    following = state * process.alphabet % states + np.arange(process.alphabet)
    matrix[:, state, following] = rows
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
