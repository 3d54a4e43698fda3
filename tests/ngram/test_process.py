"""Chains are what their tables say, start where they should, and are stationary to all digits."""

import numpy as np
import pytest

from hopscope.configs import NgramProcess
from hopscope.errors import ConfigError
from hopscope.ngram.process import configuration, sample_chains, window_distribution


def test_symbols_follow_their_tables() -> None:
    """Frequencies of what follows each configuration, over one long chain of dense rows."""
    process = NgramProcess(alphabet=3, parents=(1, 3), alpha=2.0, length=60_000)
    chains = sample_chains(process, 1, 0)
    tally = np.zeros((9, 3))
    for place in range(3, 60_001):
        tally[configuration(process, chains.tokens, place)[0], chains.tokens[0, place]] += 1
    seen = tally / tally.sum(axis=1, keepdims=True)
    spread = np.sqrt(0.25 / tally.sum(axis=1, keepdims=True))
    assert (np.abs(seen - chains.tables[0]) < 5 * spread).all()


@pytest.mark.parametrize("start", ["stationary", "uniform"])
def test_the_first_symbols_have_the_distribution_asked_for(start: str) -> None:
    process = NgramProcess(start=start, alpha=0.5, length=10)
    chains = sample_chains(process, 40_000, 1)
    expected = np.full((40_000, 9), 1 / 9)
    if start == "stationary":
        expected = window_distribution(process, chains.tables, 2)
    first = chains.tokens[:, 1] + 3 * chains.tokens[:, 0].astype(int)
    hits = expected[np.arange(40_000), first]
    # The mean probability of what was drawn is the mean sum of squares, if it was drawn with it.
    assert hits.mean() == pytest.approx((expected**2).sum(axis=1).mean(), abs=0.003)


def test_the_prior_has_its_moments() -> None:
    for tiny_or_large in (1e-3, 30.0):
        tables = sample_chains(NgramProcess(alpha=tiny_or_large, length=5), 200, 0).tables
        assert (tables > 0).all()
        np.testing.assert_allclose(tables.sum(axis=-1), 1)
    for alpha in (0.1, 1.0):
        rows = sample_chains(NgramProcess(alpha=alpha), 20_000, 0).tables.reshape(-1, 3)
        np.testing.assert_allclose(rows.mean(axis=0), 1 / 3, atol=5e-3)
        np.testing.assert_allclose(rows.var(axis=0), 2 / 9 / (alpha * 3 + 1), atol=2e-3)


def test_a_chain_is_the_same_in_any_company_and_differs_between_streams() -> None:
    few, many = (sample_chains(NgramProcess(), count, 5) for count in (3, 50))
    np.testing.assert_array_equal(few.tokens, many.tokens[:3])
    np.testing.assert_array_equal(few.tables, many.tables[:3])
    for seed, split in ((6, "train"), (5, "validation")):
        assert (sample_chains(NgramProcess(), 3, seed, split).tokens != few.tokens).any()


def test_too_many_states_for_a_stationary_start_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"10\^9999 states; .* use process.start=uniform"):
        sample_chains(NgramProcess(alphabet=10, parents=(1, 9_999), length=10_000), 2, 0)


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
    for process in (
        NgramProcess(),
        NgramProcess(alphabet=2, parents=(2, 4), alpha=1.0),
        NgramProcess(alphabet=4, parents=(3,), alpha=0.05),
    ):
        tables = sample_chains(process, 40, 3).tables
        weights = window_distribution(process, tables, process.memory)
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        for table, weight in zip(tables, weights, strict=True):
            np.testing.assert_allclose(weight @ transitions(process, table), weight, atol=1e-12)


def test_nearly_deterministic_tables_keep_their_digits() -> None:
    """Two states, left with probabilities 1e-20 and 3e-20: an eigenvector sees only ones."""
    table = np.array([[[1, 1e-20], [3e-20, 1]]])
    weights = window_distribution(NgramProcess(alphabet=2, parents=(1,)), table, 1)
    np.testing.assert_allclose(weights, [[0.75, 0.25]])
