"""Information of sets of lags, held against its definition, symbol by symbol."""

import numpy as np
import pytest

from hopscope.configs import Descent, InductionModel, NgramProcess
from hopscope.errors import ConfigError
from hopscope.ngram import information
from hopscope.ngram.counts import pattern_counts
from hopscope.ngram.process import sample_chains, window_distribution
from hopscope.ngram.similarity import MatchSimilarity
from hopscope.ngram.trainer import ChainLoss


def by_definition(table: np.ndarray, weights: np.ndarray, lags: tuple[int, ...]) -> float:
    """E over x_S of (Σ_e P(e|x_S)²/μ(e) − 1)·μ(x_S), for parents 1 and 2, windows of two."""
    joint = {}
    for new, old, symbol in np.ndindex(3, 3, 3):
        at_lag = {1: new, 2: old}
        key = tuple(at_lag[lag] for lag in lags)
        joint[key, symbol] = joint.get((key, symbol), 0) + (
            weights[new + 3 * old] * table[new + 3 * old, symbol]
        )
    mu = [sum(joint[key, e] for key in {k for k, _ in joint}) for e in range(3)]
    total = 0.0
    for key in {k for k, _ in joint}:
        often = sum(joint[key, e] for e in range(3))
        conditional = [joint[key, e] / often for e in range(3)]
        total += often * (sum(p**2 / m for p, m in zip(conditional, mu, strict=True)) - 1) * often
    return total


def test_information_is_its_definition() -> None:
    process, model = NgramProcess(alpha=0.5), InductionModel(window=2, heads=2)
    found = information.exact(process, model, chains=12, seed=4)
    tables = sample_chains(process.model_copy(update={"start": "uniform"}), 12, 4).tables
    weights = window_distribution(process, tables, 2)
    for each in found:
        values = [by_definition(t, w, each.lags) for t, w in zip(tables, weights, strict=True)]
        assert each.value == pytest.approx(np.mean(values), abs=1e-12)
        assert each.error == pytest.approx(np.std(values, ddof=1) / np.sqrt(12))


def test_long_chains_estimate_what_tables_say() -> None:
    process, model = NgramProcess(alpha=1.0, length=20_000), InductionModel()
    exact = information.exact(process, model, chains=30, seed=2)
    chains = sample_chains(process, 30, 2)
    for one, other in zip(exact, information.estimated(chains, model), strict=True):
        assert one.lags == other.lags
        assert one.value == pytest.approx(other.value, abs=3e-3)


def test_heads_of_one_lag_each_see_the_information_of_their_lags() -> None:
    process, model = NgramProcess(alpha=0.5), InductionModel(own=60.0)
    seen = information.through_heads(process, model, chains=20, seed=1)
    exact = information.exact(process, model, chains=20, seed=1)
    for one, other in zip(seen, exact, strict=True):
        assert one.lags == other.lags
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert one.error == pytest.approx(other.error, abs=1e-12)


def test_a_head_that_looks_at_no_lag_most_is_not_named_by_one() -> None:
    """Heads beyond the window begin with even attention."""
    process, model = NgramProcess(), InductionModel(heads=4, degree=1)
    seen = information.through_heads(process, model, chains=2)
    assert [each.lags for each in seen] == [(1,), (2,), (3,), (0,)]


def test_what_heads_see_is_what_their_coefficients_gain() -> None:
    """The gradient by c at a small a, over many long chains, orders the sets the same way."""
    process, model = NgramProcess(alpha=0.5, length=1_000), InductionModel()
    chains = sample_chains(process, 2_000, 0)
    rows, matches = pattern_counts(chains.tokens, 3, model.window)
    on = ChainLoss(Descent(), rows.for_loss(chains.targets, every_symbol=False))
    similarity = MatchSimilarity(model, matches)
    before = similarity.state()["c"]
    similarity.descend(on.slope(similarity.scaled()), lr=1.0)
    gain = similarity.state()["c"] - before
    seen = np.array([each.value for each in information.through_heads(process, model, 2_000)])
    # A step of c_S is affine in its gain of information; targets add their noise.
    assert np.corrcoef(gain, seen)[0, 1] > 0.99


def test_distributions_too_large_to_write_down_are_refused() -> None:
    large = NgramProcess(alphabet=10), InductionModel(window=6)
    with pytest.raises(ConfigError, match="estimate from sampled chains instead"):
        information.exact(*large)
    with pytest.raises(ConfigError, match="1,000,000,000,000 pairs of windows, too many"):
        information.through_heads(*large)
    far = NgramProcess(parents=(1, 4), alphabet=2), InductionModel(window=3)
    with pytest.raises(ConfigError, match="4 earlier symbols and the model's window is 3"):
        information.through_heads(*far)
    assert len(information.exact(*far, chains=2)) == 6
