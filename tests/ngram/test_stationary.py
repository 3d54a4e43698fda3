"""Stationary distributions: that a step changes nothing, and that no digit is lost."""

import numpy as np

from hopscope.configs import NgramProcess
from hopscope.ngram.process import sample_chains
from hopscope.ngram.stationary import window_distribution

SETTINGS = [
    NgramProcess(),
    NgramProcess(parents=(1,)),
    NgramProcess(alphabet=2, parents=(2, 4), alpha=1.0),
    NgramProcess(alphabet=4, parents=(3,), alpha=0.05),
]


def transitions(process: NgramProcess, table: np.ndarray) -> np.ndarray:
    """The transition matrix over windows, symbol by symbol."""
    d, memory = process.alphabet, process.memory
    matrix = np.zeros((d**memory, d**memory))
    for state in range(d**memory):
        at_lag = [state // d ** (lag - 1) % d for lag in range(1, memory + 1)]
        row = sum(at_lag[lag - 1] * d**k for k, lag in enumerate(process.parents))
        for symbol in range(d):
            following = sum(s * d**k for k, s in enumerate([symbol, *at_lag[:-1]]))
            matrix[state, following] = table[row, symbol]
    return matrix


def test_stationary_means_that_a_step_changes_nothing() -> None:
    for process in SETTINGS:
        chains = sample_chains(process, 40, 3)
        weights = window_distribution(process, chains.tables, process.memory)
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        for table, weight in zip(chains.tables, weights, strict=True):
            np.testing.assert_allclose(weight @ transitions(process, table), weight, atol=1e-12)


def test_nearly_deterministic_tables_keep_their_digits() -> None:
    """Two states, left with probabilities 1e-20 and 3e-20: an eigenvector sees only ones."""
    table = np.array([[[1, 1e-20], [3e-20, 1]]])
    weights = window_distribution(NgramProcess(alphabet=2, parents=(1,)), table, 1)
    np.testing.assert_allclose(weights, [[0.75, 0.25]])


def test_longer_windows_sum_to_shorter_ones() -> None:
    process = NgramProcess(alphabet=3, parents=(1, 2))
    tables = sample_chains(process, 10, 0).tables
    short = window_distribution(process, tables, 2)
    long = window_distribution(process, tables, 4).reshape(10, 9, 9)
    np.testing.assert_allclose(long.sum(axis=1), short, atol=1e-12)  # without lags 3 and 4
    np.testing.assert_allclose(long.sum(axis=2), short, atol=1e-12)  # without lags 1 and 2
