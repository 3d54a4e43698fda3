"""Chains are what their tables say, and start where they should."""

import numpy as np
import pytest

from hopscope.configs import NgramProcess
from hopscope.errors import ConfigError
from hopscope.ngram.process import configuration, sample_chains
from hopscope.ngram.stationary import window_distribution


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
    assert hits.mean() == pytest.approx((expected**2).sum(axis=1).mean(), abs=0.01)


def test_the_prior_has_its_moments() -> None:
    for tiny_or_large in (1e-3, 30.0):
        tables = sample_chains(NgramProcess(alpha=tiny_or_large, length=5), 200, 0).tables
        assert (tables > 0).all()
        np.testing.assert_allclose(tables.sum(axis=-1), 1)
    alpha, d = 0.1, 3
    rows = sample_chains(NgramProcess(alpha=alpha), 20_000, 0).tables.reshape(-1, d)
    np.testing.assert_allclose(rows.mean(axis=0), 1 / d, atol=5e-3)
    variance = (1 / d) * (1 - 1 / d) / (alpha * d + 1)
    np.testing.assert_allclose(rows.var(axis=0), variance, atol=5e-3)


def test_a_chain_is_the_same_in_any_company_and_differs_between_streams() -> None:
    few, many = (sample_chains(NgramProcess(), count, 5) for count in (3, 50))
    np.testing.assert_array_equal(few.tokens, many.tokens[:3])
    np.testing.assert_array_equal(few.tables, many.tables[:3])
    for other in (
        sample_chains(NgramProcess(), 3, 6),
        sample_chains(NgramProcess(), 3, 5, "validation"),
    ):
        assert (other.tokens != few.tokens).any()


def test_too_many_states_for_a_stationary_start_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"10,000 states; .* use start = uniform"):
        sample_chains(NgramProcess(alphabet=10, parents=(1, 4)), 2, 0)
