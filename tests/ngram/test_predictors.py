"""Predictors and information, held against their definitions, symbol by symbol."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import Descent, NgramProcess
from hopscope.ngram import predictors
from hopscope.ngram.process import Chains, sample_chains


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1_000),
    alphabet=st.integers(2, 4),
    lags=st.sets(st.integers(1, 4), min_size=1, max_size=3),
)
def test_the_induction_head_averages_what_followed_its_matches(
    seed: int, alphabet: int, lags: set[int]
) -> None:
    process = NgramProcess(alphabet=alphabet, length=12, start="uniform")
    chains = sample_chains(process, 15, seed)
    answers, found = predictors.gih(chains, 4, tuple(lags))
    for number, tokens in enumerate(chains.tokens):
        places = range(4, 12)
        same = [p for p in places if all(tokens[p - lag] == tokens[12 - lag] for lag in lags)]
        tally = np.bincount(tokens[same or list(places)], minlength=alphabet)
        np.testing.assert_allclose(answers[number], tally / tally.sum(), atol=1e-12)
        assert found[number] == bool(same)


def test_bayes_counts_what_followed_the_parents_and_adds_the_prior() -> None:
    process = NgramProcess(alphabet=2, parents=(1,), alpha=0.5, length=6)
    tokens = np.array([[0, 1, 0, 1, 1, 0, 1]], np.int8)  # after 0: 1, 1, and ? is asked
    chains = Chains(process, tokens, np.full((1, 2, 2), 0.5))
    np.testing.assert_allclose(predictors.bayes(chains), [[0.5 / 3, 2.5 / 3]])


def test_nobody_beats_bayes_and_bayes_does_not_beat_the_truth() -> None:
    process = NgramProcess(start="uniform", alpha=0.5, length=40)
    chains = sample_chains(process, 4_000, 0)
    losses = [
        predictors.expected_loss(answers, chains, 1e-6)
        for answers in (
            predictors.truth(chains),
            predictors.bayes(chains),
            predictors.gih(chains, 3, (1, 2))[0],
            predictors.evenly(chains),
        )
    ]
    assert losses[0] < losses[1] < losses[2]
    assert losses[1] < losses[3] == pytest.approx(np.log(3), abs=1e-5)


def test_losses_are_the_mean_over_targets() -> None:
    chains = sample_chains(NgramProcess(length=10), 5, 0)
    answers = predictors.evenly(chains)
    log = predictors.mean_loss(Descent(epsilon=1e-9), answers, chains)
    soft = predictors.mean_loss(Descent(loss="softmax"), answers, chains)
    assert log == pytest.approx(np.log(3))
    assert soft == pytest.approx(np.log(3))
    assert predictors.distance(answers, np.eye(3)[[0, 1, 2, 0, 1]]) == pytest.approx(2 / 3)
